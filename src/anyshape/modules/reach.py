"""Where the user's code can keep something: globals, class attributes, closures, `__slots__`.

A function of the user's is followed by the names in its code, as in `user_code`; nothing is run. Slots are read and written
through the descriptors of the classes: a frozen dataclass is put back like any other object, and no code of the user runs.
Slots of the standard library are left out: they hold values that do not change, and caches.
"""

from __future__ import annotations

import dis
import random
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np
import torch

from anyshape.modules.plain_access import attributes_of, is_a
from anyshape.modules.same_values import is_same
from anyshape.modules.user_code import codes_of, functions_of_classes, is_users, user_submodules

MISSING: Any = object()
GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_CHANGEABLE = (list, dict, set, deque, torch.Tensor, np.ndarray, *GENERATORS)
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_NUMBERS = (bool, int, float, complex, str, type(None))
NOTHING: frozenset[Any] = frozenset()
WRITTEN: frozenset[Any] = frozenset([(None, True)])
REWRITTEN: frozenset[Any] = frozenset([(None, False)])
"""What was written, as pairs: which item, and whether it has another value than before. An equal value is written, too."""


@dataclass(frozen=True, eq=False)
class Place:
    """A variable outside the module: `name` as the user reads it, and the space (dict, class, cell) that holds it."""

    name: str
    space: Any
    key: str = ""

    def get(self) -> Any:
        """The value, or MISSING."""
        if isinstance(self.space, CellType):
            return _cell_content(self.space)
        return (self.space if isinstance(self.space, dict) else vars(self.space)).get(self.key, MISSING)

    def set(self, value: Any) -> None:
        """Put a value there; MISSING removes the variable."""
        if self.get() is value:
            return
        if isinstance(self.space, dict):
            self.space.pop(self.key, None)
            if value is not MISSING:
                self.space[self.key] = value
        elif isinstance(self.space, type):
            delattr(self.space, self.key) if value is MISSING else setattr(self.space, self.key, value)
        elif value is not MISSING:
            self.space.cell_contents = value


def outside_places(module: torch.nn.Module) -> list[Place]:
    """Every variable outside the module that a call may write, each once."""
    kinds = tuple(dict.fromkeys(type(part) for part in user_submodules(module)))
    functions = [*_functions_of(kinds), *_functions_in(module)]
    found: dict[tuple[int, str], Place] = {}
    for place in (*_class_attributes(kinds), *(place for each in functions for place in _of_function(each))):
        found.setdefault((id(place.space), place.key), place)
    return list(found.values())


@lru_cache(maxsize=64)
def _functions_of(kinds: tuple[type[torch.nn.Module], ...]) -> tuple[FunctionType, ...]:
    """The functions that the code of these classes reaches, without those of installed packages."""
    return tuple(function for function in functions_of_classes(kinds) if _is_users_function(function))


def _functions_in(module: torch.nn.Module) -> Iterator[FunctionType]:
    """Functions that are attributes or hooks of parts: a forward of its own, a closure."""
    for part in module.modules():
        hooks = (part.__dict__.get(name) or {} for name in ("_forward_hooks", "_forward_pre_hooks"))
        for value in (*vars(part).values(), *(hook for each in hooks for hook in each.values())):
            function = value.__func__ if is_a(value, MethodType) else value
            if _is_users_function(function):
                yield function


def _class_attributes(kinds: tuple[type, ...]) -> Iterator[Place]:
    for above in dict.fromkeys(above for kind in kinds for above in kind.__mro__):
        if _is_users_class(above):
            names = [name for name, value in vars(above).items() if not name.startswith("__") and _can_change(value)]
            yield from (Place(f"{above.__name__}.{name}", above, name) for name in names)


def _of_function(function: FunctionType) -> Iterator[Place]:
    space = function.__globals__
    for code in codes_of(function):
        for name in stored_globals(code):
            yield Place(name, space, name)
        for name in code.co_names:
            value: Any = space.get(name)
            if is_a(value, _CHANGEABLE) or _is_users_object(value):
                yield Place(name, space, name)
            elif is_a(value, type) and _is_users_class(value):
                yield from _class_attributes((value,))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__" and _can_change(_cell_content(cell)):
            yield Place(name, cell)
    for name in vars(function):
        if name != "__wrapped__":
            yield Place(f"{function.__name__}.{name}", vars(function), name)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name, value in zip(reversed(parameters), reversed(function.__defaults__ or ()), strict=False):
        if is_a(value, _CHANGEABLE) or _is_users_object(value):
            yield Place(name, {name: value}, name)
    for name, value in (function.__kwdefaults__ or {}).items():
        if isinstance(value, _CHANGEABLE) or _is_users_object(value):
            yield Place(name, function.__kwdefaults__ or {}, name)


@lru_cache(maxsize=4096)
def stored_globals(code: CodeType) -> tuple[str, ...]:
    """The names that a code assigns after `global`."""
    stores = [step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")]
    return tuple(dict.fromkeys(stores))


def _can_change(value: Any) -> bool:
    """Whether the value is data: no function, class, module or descriptor."""
    return value is MISSING or is_a(value, (*_CHANGEABLE, *_NUMBERS, tuple)) or _is_users_object(value)


def _is_users_object(value: Any) -> bool:
    if is_a(value, torch.nn.Module):
        return True
    return (attributes_of(value) is not None or bool(slots_of(value))) and _is_users_class(type(value))


def _is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    functions = [value for value in vars(kind).values() if is_a(value, FunctionType)]
    if functions:
        return any(_is_users_function(value) for value in functions)
    return file is not None and is_users(file) and not file.startswith(_INSTALLED)


def _is_users_function(value: Any) -> bool:
    """Whether the value is a function of the user's: globals of installed packages hold tables and registers."""
    if not is_a(value, FunctionType):
        return False
    file = value.__code__.co_filename
    return is_users(file) and not file.startswith(_INSTALLED)


def _cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return MISSING


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


def put_slot_values(value: Any, values: dict[str, Any]) -> frozenset[Any]:
    """Give the slots of an object these values, and no value to all others; what was written, by the names of the slots."""
    now = slot_values(value)
    members = slots_of(value)
    written = {name for name in values if name not in now or now[name] is not values[name]}
    for name in written:
        members[name].__set__(value, values[name])
    added = now.keys() - values.keys()
    for name in added:
        members[name].__delete__(value)
    return pairs_of(written, now, values) | {(name, True) for name in added}


def pairs_of(keys: Iterable[Any], now: Mapping[Any, Any], before: Mapping[Any, Any]) -> frozenset[Any]:
    """Each key with whether its value is another one than before."""
    return frozenset((key, key not in now or not is_same(now[key], before[key])) for key in keys)
