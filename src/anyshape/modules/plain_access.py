"""The parts of an object of the user's, read past the code of its class: its kind, its attributes, its items.

A class may compute or raise in `__len__`, `__iter__`, `__getattr__`, `__eq__` or `__class__`: imports that are made when they
are used, data frames, symbolic objects. A walk over everything that a module holds meets all of them, and runs nothing of it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import lru_cache
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

Kinds = type | tuple[type, ...]

# An OrderedDict has an order beside that of its dict, so it is looked for first.
_CONTAINERS: tuple[Any, ...] = (OrderedDict, dict, list, deque, set, frozenset, tuple)
_DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType)  # the second of classes of C, such as SimpleNamespace


def is_a(value: Any, kinds: Kinds) -> bool:
    """`isinstance`, by the type alone: an object may give itself out as another by `__class__`."""
    return issubclass(type(value), kinds)


def container_kind(value: Any) -> Any:
    """The container of Python's own that a value is, or that its class extends; None for other values."""
    kind: Any = type(value)
    return kind_of_container(kind)


@lru_cache(maxsize=4096)
def kind_of_container(kind: type) -> Any:
    """The container of Python's own that a class is, or extends; None for other classes."""
    return next((each for each in _CONTAINERS if issubclass(kind, each)), None)


def is_exact(value: Any) -> bool:
    """Whether a container is one of Python's own, so that its methods run no other code."""
    return type(value) in _CONTAINERS


def length_of(value: Any) -> int:
    """The number of items of a container."""
    length: int = container_kind(value).__len__(value)
    return length


def keys_of(value: Any) -> list[Any]:
    """The keys of a dict, the items of another container."""
    kind = container_kind(value)
    iterator = kind.__iter__(value)
    return [*iterator]


def items_of(value: Any) -> list[Any]:
    """The values of a dict, the items of another container."""
    kind = container_kind(value)
    return [item for _, item in kind.items(value)] if issubclass(kind, dict) else keys_of(value)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes; None for one without, for a class, and where the class puts another in its place."""
    if is_a(value, type):
        return None
    kind: Any = type(value)
    descriptor = _attributes_descriptor(kind)
    return None if descriptor is None else descriptor.__get__(value)


@lru_cache(maxsize=4096)
def _attributes_descriptor(kind: type) -> Any:
    members = (type.__dict__["__dict__"].__get__(above) for above in kind.__mro__)
    found = next((each["__dict__"] for each in members if "__dict__" in each), None)
    return found if type(found) in _DESCRIPTORS else None


def module_name(value: Any) -> str:
    """The first part of the name of the module that an object's class is defined in."""
    return str(type(value).__module__).partition(".")[0]
