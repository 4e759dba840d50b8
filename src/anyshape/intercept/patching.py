"""Replace names while something runs, and restore them afterwards.

The process is one of ours (processes/isolated.py), so other threads need not be thought of. Two replacements that many places
need are here as well: `lru_cache` of the user's functions, since an open size cannot be looked up and a tensor that was only
traced must not be found by the next real call; and torch's one kernel for a whole encoder layer, which has no fake form.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import _lru_cache_wrapper
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


_CAPTURING = threading.local()  # without a process of its own, an export leaves the calls of other threads as they are


@contextmanager
def capturing() -> Iterator[None]:
    """Within this, `is_capturing()` is true."""
    depth = getattr(_CAPTURING, "depth", 0)
    _CAPTURING.depth = depth + 1
    try:
        yield
    finally:
        _CAPTURING.depth = depth


def is_capturing() -> bool:
    """Whether the running thread captures a module with open sizes right now."""
    return getattr(_CAPTURING, "depth", 0) > 0


Patch = tuple[Any, str, Any]
"""Where a name is (a function's globals, a class or a cell of a closure), the name, and its replacement."""


@contextmanager
def patched(found: Iterable[Patch]) -> Iterator[None]:
    """Within this, the names mean their replacements; afterwards what they meant before, also after an error."""
    changed: list[Patch] = []
    with _put_back(changed):
        for place, name, value in list(found):
            before = place.cell_contents if isinstance(place, CellType) else _names_in(place)[name]
            changed.append((place, name, before))
            _put(place, name, value)
        yield


@contextmanager
def _put_back(changed: list[Patch]) -> Iterator[None]:
    try:
        yield
    finally:
        for place, name, before in reversed(changed):
            _put(place, name, before)


def _names_in(place: Any) -> Any:
    return place if isinstance(place, dict) else vars(place)


def _put(place: Any, name: str, value: Any) -> None:
    if isinstance(place, dict):
        place[name] = value
    else:
        setattr(place, name, value)


class StandsFor(type):
    """A class that is used in the place of another, `own`: `isinstance`, `issubclass`, attributes, `==` and `|` use `own`."""

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


def uncached(module: torch.nn.Module) -> AbstractContextManager[None]:
    """Within this, the user's functions behind `lru_cache` are called each time, without their cache."""
    return patched(uncached_functions(module))


def uncached_functions(module: torch.nn.Module) -> Iterator[Patch]:
    """The function behind each cache, among the globals of the user's functions and the methods of the user's classes.

    A decorator may hold the cache in its closure and call it only sometimes, as that of transformers does.
    """
    from anyshape.modules.user_code import user_functions, user_submodules  # loads torch: who runs a file does without

    spaces = {id(function.__globals__): function.__globals__ for function in user_functions(module)}
    kinds = dict.fromkeys(above for part in user_submodules(module) for above in type(part).__mro__)
    seen: set[int] = set()
    for place, space in (*((each, each) for each in spaces.values()), *((kind, vars(kind)) for kind in kinds)):
        for name, value in list(space.items()):
            bound = value.__func__ if type(value) in (staticmethod, classmethod, MethodType) else value
            if type(value) is _lru_cache_wrapper:
                yield place, name, value.__wrapped__
            elif type(value) in (staticmethod, classmethod) and type(bound) is _lru_cache_wrapper:
                yield place, name, type(value)(bound.__wrapped__)
            else:
                yield from _caches_in_closure(bound, seen)


def _caches_in_closure(function: Any, seen: set[int]) -> Iterator[Patch]:
    """The function behind each cache in the closure of a function, and of functions there; none that is `seen`."""
    if type(function) is not FunctionType or id(function) in seen:
        return
    seen.add(id(function))
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:  # nothing was put into it yet
            continue
        if type(held) is _lru_cache_wrapper:
            if id(cell) not in seen:
                seen.add(id(cell))
                yield cell, "cell_contents", held.__wrapped__
        else:
            yield from _caches_in_closure(held, seen)


@contextmanager
def without_fused_layers() -> Iterator[None]:
    """Within this, nn.Transformer's layers run step by step; torch's setting itself does not change."""
    import torch

    with patched([(vars(torch.backends.mha), "get_fastpath_enabled", lambda: False)]):
        yield
