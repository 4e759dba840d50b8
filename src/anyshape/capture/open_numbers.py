"""While a module is captured with open sizes, `int`, `float`, `len` and `math` in the user's own code keep sizes open.

    int(x.shape[1] * 0.3)     torch: the traced size, frozen     ->     here: the size, truncated, and still a size

Python wants a real number from `int()`, so torch has to freeze one. The names are looked up in the globals of the user's
functions; there, and only while this is entered, they stand for functions that leave sizes as they are. Whoever gives them
something else gets what Python's own give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import SymFloat, SymInt

from anyshape.modules.user_code import user_functions
from anyshape.operators.open_math import OPEN_EXP, OPEN_LOG, OPEN_LOG2, OPEN_LOG10

_MISSING = object()


@contextmanager
def open_numbers(module: torch.nn.Module) -> Iterator[None]:
    """Afterwards all globals are as before, whatever happened."""
    changed: list[tuple[dict[str, Any], str, Any]] = []
    spaces = {id(function.__globals__): function.__globals__ for function in user_functions(module)}
    try:
        for space in spaces.values():
            for name, value in _replaced(space):
                changed.append((space, name, space.get(name, _MISSING)))
                space[name] = value
        yield
    finally:
        for space, name, before in reversed(changed):
            if before is _MISSING:
                space.pop(name, None)
            else:
                space[name] = before


def _replaced(space: dict[str, Any]) -> list[tuple[str, Any]]:
    """What stands for what: builtins that the user has not named otherwise, `math`, and what was imported from it."""
    found: list[tuple[str, Any]] = [(name, value) for name, value in _BUILTINS.items() if name not in space]
    for name, value in space.items():
        if value is math:
            found.append((name, _OpenMath()))
        elif callable(value) and _is_known(value):
            found.append((name, _FUNCTIONS[value]))
    return found


def _is_known(value: Any) -> bool:
    try:
        return value in _FUNCTIONS
    except TypeError:  # without a hash
        return False


class _StandsFor(type):
    """A class that stands for another: `isinstance`, `issubclass`, attributes, `==` and `|` mean that one."""

    own: type

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], *, own: type) -> _StandsFor:
        made = super().__new__(mcs, name, bases, space)
        made.own = own
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], *, own: type) -> None:
        super().__init__(name, bases, space)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.own)

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


class _OpenInt(metaclass=_StandsFor, own=int):
    """int() of a size is the size, of a number made of sizes its whole part."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], (SymInt, SymFloat)):
            return args[0] if isinstance(args[0], SymInt) else torch.sym_int(args[0])
        return int(*args, **kwargs)


class _OpenFloat(metaclass=_StandsFor, own=float):
    """float() of a size is that size as a number."""

    def __new__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (SymInt, SymFloat)):
            return torch.sym_float(args[0])
        return float(*args)


def _open_sqrt(number: Any, /) -> Any:
    return torch._sym_sqrt(number) if isinstance(number, (SymInt, SymFloat)) else math.sqrt(number)  # type: ignore[attr-defined]


def _open_isqrt(number: Any, /) -> Any:
    return torch.sym_int(torch._sym_sqrt(number)) if isinstance(number, SymInt) else math.isqrt(number)  # type: ignore[attr-defined]


def _open_log(number: Any, /, *base: Any) -> Any:
    """Python divides two logarithms where a base is given."""
    if not _is_open(number, *base):
        return math.log(number, *base)
    return OPEN_LOG(number) / OPEN_LOG(base[0]) if base else OPEN_LOG(number)


def _open_pow(number: Any, power: Any, /) -> Any:
    return torch.sym_float(number) ** power if _is_open(number, power) else math.pow(number, power)


def _open_len(value: Any, /) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.ndim else len(value)


def _is_open(*numbers: Any) -> bool:
    return any(isinstance(number, (SymInt, SymFloat)) for number in numbers)


_BUILTINS: dict[str, Any] = {"int": _OpenInt, "float": _OpenFloat, "len": _open_len}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    math.sqrt: _open_sqrt,
    math.isqrt: _open_isqrt,
    math.log: _open_log,
    math.log2: OPEN_LOG2,
    math.log10: OPEN_LOG10,
    math.exp: OPEN_EXP,
    math.pow: _open_pow,
}


class _OpenMath:
    """The module math, with roots, powers and logarithms that leave sizes open."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        return _FUNCTIONS.get(value, value) if callable(value) else value
