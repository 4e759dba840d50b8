"""Replacements that only the exporting thread sees; every other thread gets the original.

Names are process-wide, so a replaced name is an object that looks at the running thread each time it is used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CAPTURING = threading.local()


@contextmanager
def capturing() -> Iterator[None]:
    """Within this, `is_capturing()` is true in this thread, and only in this one."""
    depth = getattr(_CAPTURING, "depth", 0)
    _CAPTURING.depth = depth + 1
    try:
        yield
    finally:
        _CAPTURING.depth = depth


def is_capturing() -> bool:
    """Whether the running thread captures a module with open sizes right now."""
    return getattr(_CAPTURING, "depth", 0) > 0


class ByThread:
    """`replacement` in the thread that made this object, `original` in every other: calls, attributes, type checks."""

    __slots__ = ("_original", "_replacement", "_thread")

    def __init__(self, replacement: Any, original: Any) -> None:
        for name, value in (("_replacement", replacement), ("_original", original), ("_thread", threading.get_ident())):
            object.__setattr__(self, name, value)

    def _chosen(self) -> Any:
        return self._replacement if threading.get_ident() == self._thread else self._original

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        return type(self._chosen())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._chosen()(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        chosen = self._chosen()
        return chosen.__get__(instance, owner) if hasattr(chosen, "__get__") else chosen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._chosen())

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._chosen())

    def __eq__(self, other: object) -> bool:
        return other is self or bool(self._chosen() == other)

    def __hash__(self) -> int:
        return hash(self._chosen())

    def __repr__(self) -> str:
        return repr(self._chosen())


def is_by_thread(value: Any) -> bool:
    """Whether a value is such an object; isinstance() cannot see it."""
    return type(value) is ByThread
