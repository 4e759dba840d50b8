"""Lists, sets and dicts as they were, those of modules and plain objects included; put back in place.

A large model has ten thousand of them and nearly always none is written, so all are compared at once, without a step of Python
for each. Only where one differs are they looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import is_, methodcaller
from typing import Any

NOTHING: frozenset[Any] = frozenset()
WRITTEN: frozenset[Any] = frozenset([None])
_NEW = "<new>"  # an item that was not there, whatever its key: a cache has another at each size

_values = methodcaller("values")


class KeptContainers:
    """Containers with the items that they had when they were added."""

    def __init__(self) -> None:
        self._containers: list[Any] = []
        self._dicts: list[dict[Any, Any]] = []
        self._lengths: list[int] = []
        self._items: list[Any] = []
        self._dict_values: list[Any] = []
        self._undo: list[Callable[[], frozenset[Any]]] = []

    def add(self, content: Any) -> None:
        """Keep the items of this container."""
        self._containers.append(content)
        self._lengths.append(len(content))
        self._items.extend(content)
        if isinstance(content, dict):
            self._dicts.append(content)
            self._dict_values.extend(content.values())
        self._undo.append(_refill(content))

    def restore(self) -> list[frozenset[Any]]:
        """Put the same items back; what was written of each container."""
        return [NOTHING] * len(self._undo) if self._are_unwritten() else [undo() for undo in self._undo]

    def _are_unwritten(self) -> bool:
        return (
            list(map(len, self._containers)) == self._lengths
            and _are_same(chain.from_iterable(self._containers), self._items)
            and _are_same(chain.from_iterable(map(_values, self._dicts)), self._dict_values)
        )


def _refill(content: Any) -> Callable[[], frozenset[Any]]:
    """Put the same items back into the same container; what was written, a module's mode left out."""
    if isinstance(content, dict):
        items = dict(content)

        def undo() -> frozenset[Any]:
            if len(content) == len(items) and _are_same(content, items) and _are_same(content.values(), items.values()):
                return NOTHING
            written = {key for key in items if content.get(key, content) is not items[key]}
            if len(content) != len(items) or written:
                written |= {_NEW} if content.keys() - items.keys() else set()
                content.clear()
                content.update(items)
            return frozenset(written - {"training"})

        return undo
    kept = list(content)

    def undo_sequence() -> frozenset[Any]:
        is_other = len(content) != len(kept) or not _are_same(content, kept)
        if is_other:
            content.clear()
            (content.update if isinstance(content, set) else content.extend)(kept)
        return WRITTEN if is_other else NOTHING

    return undo_sequence


def _are_same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return all(map(is_, some, others))
