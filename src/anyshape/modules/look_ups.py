"""What is looked up where: the numbers in an item, and those in each key of the container, of whatever class that is.

    GRID.get((h, w)), (h, w) in PAIRS     dict, set, list, deque, views, ChainMap, MappingProxyType    ->  their keys
    self.table[f"{h}x{w}"]                ParameterDict, ModuleDict                                    ->  their names
    getattr(self, f"bias_{h}_{w}")        a module, any object, a class, an Enum                       ->  names of attributes
    table[h, w], (h, w) in table          a class of the user's or of a library                        ->  keys of what it holds
    (SIZES == np.array([h, w])).all(1)    an array                                                     ->  its rows

Sizes are computed at which item and key have the same numbers, and the file is compared there. Methods of the user's are not
called for it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from anyshape.modules.plain_access import (
    attributes_of,
    container_kind,
    is_a,
    items_of,
    keys_of,
    kind_of_container,
    module_name,
)
from anyshape.modules.reach import slot_values
from anyshape.modules.user_code import is_users

_MOST_KEYS = 4096
_DEPTH = 2  # a container of a class holds its keys in an attribute, or in one of an attribute
_METHODS = (MethodType, BuiltinMethodType, MethodWrapperType)
_NO_VALUES = (
    torch.Tensor,
    str,
    bytes,
    int,
    float,
    FunctionType,
    ModuleType,
)  # neither containers nor made of attributes
_DIGITS = re.compile(r"\d+")

Numbers = tuple[int, ...]


class LookUp(NamedTuple):
    """The numbers in the item that is looked up, and those in each key; a key has at most as many."""

    item: Numbers
    keys: frozenset[Numbers]


def read_look_up(item: Numbers, keys: Iterable[Numbers]) -> LookUp | None:
    """The look-up of these numbers among those of keys; None where no key has numbers."""
    found = frozenset(key for key in keys if 0 < len(key) <= len(item))
    return LookUp(item, found) if found else None


def numbers_in(value: Any) -> Numbers:
    """The integers of plain data, from left to right: (3, "x50") has 3 and 50."""
    if is_a(value, (bool, np.bool_)):
        return ()
    if is_a(value, (int, np.integer)):
        return (int(value),)
    if is_a(value, (str, bytes)):
        text = bytes.decode(value, "latin-1") if is_a(value, bytes) else value
        return tuple(map(int, _DIGITS.findall(text)))
    if is_a(value, (tuple, list)):
        return tuple(number for each in items_of(value) for number in numbers_in(each))
    if is_a(value, np.ndarray) and value.dtype.kind in "iu" and value.size <= _MOST_KEYS:
        return tuple(map(int, value.reshape(-1)))
    return tuple(number for each in parts_of_value(value) if not parts_of_value(each) for number in numbers_in(each))


def parts_of_value(value: Any) -> list[Any]:
    """What an object holds that its class compares or hashes by what it holds, as a dataclass does; nothing for others.

    Of the standard library's own (`Fraction(16, 9)`, `PurePath("w/120.pt")`), what it is written as.
    """
    kind: Any = type(value)
    if not _is_compared_by_value(kind):
        return []
    if kind.__hash__ is not None and module_name(value) in sys.stdlib_module_names:
        return [repr(value)]
    return [*(attributes_of(value) or {}).values(), *slot_values(value).values()]


@lru_cache(maxsize=4096)
def _is_compared_by_value(kind: Any) -> bool:
    if issubclass(kind, (*_NO_VALUES, *_METHODS, np.ndarray)) or kind_of_container(kind) is not None:
        return False
    own = {name: inspect.getattr_static(kind, name) for name in ("__eq__", "__hash__")}
    return any(method is not None and method is not getattr(object, name) for name, method in own.items())


def numbers_of_keys(container: Any) -> list[Numbers]:
    """The numbers in keys, items or names of attributes that may be looked up in it, or in the object of a method."""
    container = container.__self__ if is_a(container, _METHODS) else container
    return list(dict.fromkeys(map(numbers_in, islice(_keys(container, _DEPTH), _MOST_KEYS))))


def _keys(container: Any, depth: int) -> Iterator[Any]:
    if is_a(container, np.ndarray):
        yield from container if container.ndim else ()
        return
    if is_a(container, _NO_VALUES):
        return
    with suppress(Exception):  # it cannot be read, or not now
        yield from _items(container)
    for name, value in _attributes(container):
        yield name
        if depth and not is_a(value, torch.nn.Module):
            yield from _keys(value, depth - 1)


def _items(container: Any) -> Iterable[Any]:
    """The keys or items, without a call of a method of the user's; nothing of what is used up by reading."""
    if container_kind(container) is not None:
        return keys_of(container)
    method = inspect.getattr_static(type(container), "__iter__", None)
    is_users_own = is_a(method, FunctionType) and is_users(method.__code__.co_filename)
    is_readable = is_a(container, Iterable) and not is_a(container, Iterator) and not is_users_own
    return container if is_readable else ()


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object by name; those of a class where it is one."""
    own = vars(value) if is_a(value, type) else attributes_of(value) or {}
    if is_a(value, torch.nn.Module):
        for held in ("_parameters", "_buffers", "_modules"):
            yield from own.get(held, {}).items()
    named = [*own.items(), *slot_values(value).items()]
    yield from ((name, inner) for name, inner in named if not name.startswith("__"))
