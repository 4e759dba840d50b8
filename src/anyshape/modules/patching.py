"""Temporarily replace names in user code during capture, for the capturing thread alone, and restore them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.modules.one_thread import ByThread

Standing = tuple[Any, str, Any]
"""Where a name is (a function's globals or a class), the name, and its replacement in the capturing thread."""


@contextmanager
def standing(found: Iterable[Standing]) -> Iterator[None]:
    """Within this, the names mean their replacements in this thread and what they meant before in all others.

    Afterwards they mean what they meant before everywhere, also after an error.
    """
    changed: list[Standing] = []
    with _put_back(changed):
        for place, name, value in list(found):
            before = (place if isinstance(place, dict) else vars(place))[name]
            changed.append((place, name, before))
            _put(place, name, ByThread(value, before))
        yield


@contextmanager
def _put_back(changed: list[Standing]) -> Iterator[None]:
    try:
        yield
    finally:
        for place, name, before in reversed(changed):
            _put(place, name, before)


def _put(place: Any, name: str, value: Any) -> None:
    if isinstance(place, dict):
        place[name] = value
    else:
        setattr(place, name, value)


class StandsFor(type):
    """A class that stands for another: `isinstance`, `issubclass`, attributes, `==` and `|` mean that one."""

    own: type

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], *, own: type) -> StandsFor:
        made = super().__new__(mcs, name, bases, space)
        made.own = own
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], *, own: type) -> None:
        super().__init__(name, bases, space)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.own) or cls.is_counted(value)

    def is_counted(cls, value: object) -> bool:
        """Whether a value counts as one of the other class, though it is none."""
        return False

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.own)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.own, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.own

    def __hash__(cls) -> int:
        return hash(cls.own)

    def __or__(cls, other: Any) -> Any:
        return cls.own | other

    def __ror__(cls, other: Any) -> Any:
        return other | cls.own
