"""Lists, sets, dicts and `__slots__` as they were, those of modules and plain objects included; put back in place.

A large model has ten thousand of them and nearly always none is written, so all are compared at once, without a step of Python
for each. Only where one differs are they looked at one by one. Slots are read and written through the descriptors of the
classes: a frozen dataclass is put back like any other object, and no code of the user runs. Slots of the standard library
are left out: they hold values that do not change, and caches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from operator import is_, methodcaller
from types import MemberDescriptorType
from typing import Any


def slots_of(value: Any) -> dict[str, MemberDescriptorType]:
    """The descriptors of an object's slots by name; empty for most objects."""
    kind: Any = type(value)
    return _slots_of_class(kind)


@lru_cache(maxsize=4096)
def _slots_of_class(kind: type) -> dict[str, MemberDescriptorType]:
    """The descriptors of all slots of a class and the classes above it, by name; private names as Python writes them."""
    found: dict[str, MemberDescriptorType] = {}
    for above in kind.__mro__:
        if "__slots__" in vars(above) and above.__module__.split(".")[0] not in sys.stdlib_module_names:
            members = ((name, each) for name, each in vars(above).items() if isinstance(each, MemberDescriptorType))
            for name, member in members:
                found.setdefault(name, member)
    return found


def slot_values(value: Any) -> dict[str, Any]:
    """The slots of an object that have a value."""
    found: dict[str, Any] = {}
    for name, member in slots_of(value).items():
        try:
            found[name] = member.__get__(value)
        except AttributeError:  # nothing was put there yet
            continue
    return found


def put_slot_values(value: Any, values: dict[str, Any]) -> frozenset[str]:
    """Give the slots of an object these values, and no value to all others; the names of those that had another one."""
    now = slot_values(value)
    members = slots_of(value)
    written = {name for name in values if name not in now or now[name] is not values[name]}
    for name in written:
        members[name].__set__(value, values[name])
    added = now.keys() - values.keys()
    for name in added:
        members[name].__delete__(value)
    return frozenset(written | added)


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
