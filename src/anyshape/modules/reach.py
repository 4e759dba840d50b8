"""Where the user's code can keep something outside its module: global variables, class attributes, closures, defaults.

A function of the user's is followed by the names in its code, as in `user_code`; nothing is run.
"""

from __future__ import annotations

import dis
import random
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from anyshape.modules.frames import is_users
from anyshape.modules.kept_containers import slots_of
from anyshape.modules.user_code import codes_of, functions_of_classes, user_parts

MISSING: Any = object()
GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_CHANGEABLE = (list, dict, set, deque, torch.Tensor, np.ndarray, *GENERATORS)
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_NUMBERS = (bool, int, float, complex, str, type(None))


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
    kinds = tuple(dict.fromkeys(type(part) for part in user_parts(module)))
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
            function = getattr(value, "__func__", value)
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
            value = space.get(name)
            if isinstance(value, _CHANGEABLE) or _is_users_object(value):
                yield Place(name, space, name)
            elif isinstance(value, type) and _is_users_class(value):
                yield from _class_attributes((value,))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__" and _can_change(_cell_content(cell)):
            yield Place(name, cell)
    for name in vars(function):
        if name != "__wrapped__":
            yield Place(f"{function.__name__}.{name}", vars(function), name)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name, value in zip(reversed(parameters), reversed(function.__defaults__ or ()), strict=False):
        if isinstance(value, _CHANGEABLE) or _is_users_object(value):
            yield Place(name, {name: value}, name)


@lru_cache(maxsize=4096)
def stored_globals(code: CodeType) -> tuple[str, ...]:
    """The names that a code assigns after `global`."""
    stores = [step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")]
    return tuple(dict.fromkeys(stores))


def _can_change(value: Any) -> bool:
    """Whether it is data: no function, class, module or descriptor."""
    return value is MISSING or isinstance(value, (*_CHANGEABLE, *_NUMBERS, tuple)) or _is_users_object(value)


def _is_users_object(value: Any) -> bool:
    if isinstance(value, torch.nn.Module):
        return True
    return (hasattr(value, "__dict__") or bool(slots_of(value))) and _is_users_class(type(value))


def _is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    functions = [value for value in vars(kind).values() if isinstance(value, FunctionType)]
    if functions:
        return any(_is_users_function(value) for value in functions)
    return file is not None and is_users(file) and not file.startswith(_INSTALLED)


def _is_users_function(value: Any) -> bool:
    """Whether it is written by the user; what installed packages keep in their globals are tables and registers."""
    if not isinstance(value, FunctionType):
        return False
    file = value.__code__.co_filename
    return is_users(file) and not file.startswith(_INSTALLED)


def _cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return MISSING
