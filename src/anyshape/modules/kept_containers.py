"""Lists, sets and dicts as they were, put back in place.

A large model has ten thousand containers, and nearly always none is written, so all are compared at once, without a step of
Python for each. Only where one differs are they looked at one by one. Containers of classes of the user's are few, and are read
by the methods of the class of Python that they extend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import is_, methodcaller
from typing import Any

from anyshape.modules.plain_access import container_kind, is_exact, items_of, keys_of, length_of
from anyshape.modules.reach import NOTHING, REWRITTEN, WRITTEN, pairs_of
from anyshape.modules.same_values import is_same

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
        self._users: list[Callable[[], bool]] = []  # of containers whose own methods may be the user's
        self._undo: list[Callable[[], frozenset[Any]]] = []

    def add(self, content: Any) -> None:
        """Keep the items of this container."""
        if not is_exact(content):
            self._users.append(_is_unwritten(content))
        else:
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
            and all(check() for check in self._users)
        )


def _is_unwritten(content: Any) -> Callable[[], bool]:
    """Whether a container of a class of the user's has the same items, asked past the code of its class."""
    keys, items = keys_of(content), items_of(content)

    def check() -> bool:
        is_as_long = length_of(content) == len(keys)
        return is_as_long and _are_same(keys_of(content), keys) and _are_same(items_of(content), items)

    return check


def _refill(content: Any) -> Callable[[], frozenset[Any]]:
    """Put the same items back into the same container; what was written, a module's mode left out."""
    kind = container_kind(content)
    if issubclass(kind, dict):
        pairs = list(kind.items(content))

        def undo() -> frozenset[Any]:
            now = list(kind.items(content))
            if len(now) == len(pairs) and _are_same(chain.from_iterable(now), chain.from_iterable(pairs)):
                return NOTHING
            before, after = dict(pairs), dict(now)
            changed = {key for key in before if after.get(key, now) is not before[key]}
            written = pairs_of(changed - {"training"}, after, before)
            written |= {(_NEW, True)} if after.keys() - before.keys() else NOTHING
            kind.clear(content)
            for key, item in pairs:
                kind.__setitem__(content, key, item)
            return written

        return undo
    kept = keys_of(content)

    def undo_sequence() -> frozenset[Any]:
        now = keys_of(content)
        if len(now) == len(kept) and _are_same(now, kept):
            return NOTHING
        is_equal = len(now) == len(kept) and all(map(is_same, now, kept))
        kind.clear(content)
        (kind.update if issubclass(kind, set) else kind.extend)(content, kept)
        return REWRITTEN if is_equal else WRITTEN

    return undo_sequence


def _are_same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return all(map(is_, some, others))
