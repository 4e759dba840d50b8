"""One feature of torch as a small case: a model, an example, the open axes, and inputs of other sizes to compare at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """`model` is called as `model(*args, **kwargs)`; `others` are calls of other sizes, each `(args, kwargs)`."""

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    others: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    expects: str | None = None  # the code of the finding with which it is refused, where no file can exist


@dataclass(frozen=True)
class Feature:
    group: str
    name: str
    make: Callable[[], Case]


FEATURES: list[Feature] = []


def feature(group: str, name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Lists the function that makes the case as a feature of torch."""

    def listed(make: Callable[[], Case]) -> Callable[[], Case]:
        FEATURES.append(Feature(group, name, make))
        return make

    return listed


def at(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call of the model."""
    return args, kwargs
