"""The attributes that an object keeps in `__slots__`, in place of or beside its `__dict__`.

They are read and written through the descriptors of the classes: a frozen dataclass is put back like any other object, and
no code of the user runs. Slots of the standard library are left out: they hold values that do not change, and caches.
"""

from __future__ import annotations

import sys
from functools import lru_cache
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
