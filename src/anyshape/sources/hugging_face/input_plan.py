"""The inputs of a model as a table: each has a name, axes in words, and a kind of values.

    Input("attention_mask", ("batch", "past + seq"), "mask")  ->  int64 ones of that shape, values 0 and 1

A plan gives the function of sizes, the rules and the bounds of values that `anyshape.export` takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from anyshape.domain import evaluate
from anyshape.domain.parse import parse_expr

Axis = str | int


@dataclass(frozen=True)
class Input:
    """A tensor by its path: `input_ids`, `past_key_values.0.key`. Ids and positions are less than `below`."""

    path: str
    axes: tuple[Axis, ...]
    kind: Literal["ids", "mask", "positions", "real"] = "real"
    below: int | None = None
    dtype: torch.dtype = torch.float32

    def make(self, sizes: Mapping[str, int]) -> torch.Tensor:
        """The tensor at these sizes; random where values are ids or real numbers."""
        shape = tuple(axis if isinstance(axis, int) else evaluate(parse_expr(axis), sizes) for axis in self.axes)
        if self.kind == "real":
            return torch.randn(shape).to(self.dtype)
        if self.kind == "mask":
            return torch.ones(shape, dtype=torch.int64)
        if self.kind == "positions":
            return (torch.arange(shape[-1]) + sizes.get("past", 0)).expand(shape).clone()
        return torch.randint(0, self.below or 2, shape)

    def bounds(self) -> str | None:
        """The values that the input has, as a rule; None for real numbers."""
        if self.kind == "mask":
            return f"0 <= {self.path} <= 1"
        return f"0 <= {self.path} < {self.below}" if self.below is not None else None


@dataclass(frozen=True)
class InputPlan:
    """Inputs in their order, the sizes of the example, and rules."""

    inputs: tuple[Input, ...]
    sizes: Mapping[str, int]
    where: tuple[str, ...] = ()
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        heads = dict.fromkeys(each.path.partition(".")[0] for each in self.inputs)
        object.__setattr__(self, "names", tuple(heads))

    def function(self) -> Callable[..., dict[str, Any]]:
        """The function of sizes: `inputs(batch=2, seq=5)`, whose parameters are the dims of this plan."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(dim, kind, default=size) for dim, size in self.sizes.items()]

        def inputs(*given: int, **sizes: int) -> dict[str, Any]:
            at = {**self.sizes, **dict(zip(self.sizes, given, strict=False)), **sizes}
            return nested({each.path: each.make(at) for each in self.inputs})

        inputs.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return inputs

    def values(self) -> dict[str, str]:
        """The bounds of all values that have some."""
        return {each.path: bounds for each in self.inputs if (bounds := each.bounds()) is not None}


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"past.0.key": k}` as containers: `{"past": [{"key": k}]}`. Numbers count from 0 without a gap."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        *heads, last = path.split(".")
        inner = found
        for head in heads:
            inner = inner.setdefault(head, {})
        inner[last] = value
    return {name: _as_lists(value) for name, value in found.items()}


def _as_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _as_lists(child) for name, child in value.items()}
    return list(inner.values()) if all(name.isdigit() for name in inner) else inner
