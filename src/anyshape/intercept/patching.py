"""Replace names for the exporting thread alone, and restore them afterwards.

Names are process-wide, so a replaced name is an object that looks at the running thread each time it is used: every other
thread gets the original. Three replacements that many places need are here as well: what torch.export does to `min`, `max`
and `math.pow`; `lru_cache` of the user's functions, since an open size cannot be looked up and a tensor that was only traced
must not be found by the next real call; and torch's one kernel for a whole encoder layer, which has no fake form.
"""

from __future__ import annotations

import builtins
import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import _lru_cache_wrapper, partial
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


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
    """Whether a value is a ByThread; isinstance() cannot see it."""
    return type(value) is ByThread


Patch = tuple[Any, str, Any]
"""Where a name is (a function's globals, a class or a cell of a closure), the name, and its replacement in this thread."""


@contextmanager
def patched(found: Iterable[Patch]) -> Iterator[None]:
    """Within this, the names mean their replacements in this thread and what they meant before in all others.

    Afterwards they mean what they meant before everywhere, also after an error.
    """
    changed: list[Patch] = []
    with _put_back(changed):
        for place, name, value in list(found):
            before = place.cell_contents if isinstance(place, CellType) else _names_in(place)[name]
            changed.append((place, name, before))
            _put(place, name, ByThread(value, before))
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


@contextmanager
def thread_builtins() -> Iterator[None]:
    """Within this, torch.export in this thread leaves the builtins of other threads as they are (torch 2.13)."""
    import torch
    from torch._export import non_strict_utils
    from torch.export import _trace

    between: Any = getattr(non_strict_utils, "_tensor_min_max", None)

    @contextmanager
    def replaced() -> Iterator[None]:
        largest = partial(between, real_callable=builtins.max, tensor_callable=torch.maximum)
        smallest = partial(between, real_callable=builtins.min, tensor_callable=torch.minimum)
        space = vars(builtins)
        power = lambda number, exponent: number**exponent  # noqa: E731
        with patched([(space, "max", largest), (space, "min", smallest), (vars(math), "pow", power)]):
            yield

    name = "_override_builtin_ops"
    places = [vars(module) for module in (non_strict_utils, _trace) if name in vars(module)]
    with patched([(place, name, replaced) for place in places] if between is not None else []):
        yield


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
            if is_by_thread(value):
                continue
            if isinstance(value, _lru_cache_wrapper):
                yield place, name, value.__wrapped__
            elif isinstance(value, (staticmethod, classmethod)) and isinstance(value.__func__, _lru_cache_wrapper):
                yield place, name, type(value)(value.__func__.__wrapped__)
            else:
                yield from _caches_in_closure(getattr(value, "__func__", value), seen)


def _caches_in_closure(function: Any, seen: set[int]) -> Iterator[Patch]:
    """The function behind each cache in the closure of a function, and of functions there; none that is `seen`."""
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:  # nothing was put into it yet
            continue
        if is_by_thread(held):
            continue
        if isinstance(held, _lru_cache_wrapper):
            if id(cell) not in seen:
                seen.add(id(cell))
                yield cell, "cell_contents", held.__wrapped__
        else:
            yield from _caches_in_closure(held, seen)


@contextmanager
def without_fused_layers() -> Iterator[None]:
    """Within this, nn.Transformer's layers run step by step in this thread; torch's setting itself does not change."""
    import torch

    with patched([(vars(torch.backends.mha), "get_fastpath_enabled", lambda: False)]):
        yield
