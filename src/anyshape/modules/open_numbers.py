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

from anyshape.modules.open_math import OPEN_EXP, OPEN_LOG, OPEN_LOG2, OPEN_LOG10
from anyshape.modules.real_numbers import real_number
from anyshape.modules.user_code import user_functions

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
    """float() of a size is that size as a number, of a tensor what whoever hears of it says."""

    def __new__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (SymInt, SymFloat)):
            return torch.sym_float(args[0])
        return real_number(*args) if len(args) == 1 and isinstance(args[0], torch.Tensor) else float(*args)


def _open_function(name: str, of_sizes: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """math's function of that name, which leaves sizes open and takes a float that was asked of values as a tensor."""
    own = getattr(math, name)

    def open_function(*numbers: Any) -> Any:
        if of_sizes is not None and any(isinstance(number, (SymInt, SymFloat)) for number in numbers):
            return of_sizes(*numbers)
        real = [real_number(number) if isinstance(number, torch.Tensor) else number for number in numbers]
        is_asked = any(isinstance(number, torch.Tensor) for number in real)
        if is_asked and name == "log" and len(real) == 2:  # torch's has no base
            return open_function(real[0]) / open_function(real[1])
        return getattr(torch, name)(*real) if is_asked else own(*real)

    return open_function


def _open_isqrt(number: Any, /) -> Any:
    return torch.sym_int(torch._sym_sqrt(number)) if isinstance(number, SymInt) else math.isqrt(number)  # type: ignore[attr-defined]


def _log_of_sizes(number: Any, /, *base: Any) -> Any:
    """Python divides two logarithms where a base is given."""
    return OPEN_LOG(number) / OPEN_LOG(base[0]) if base else OPEN_LOG(number)


def _pow_of_sizes(number: Any, power: Any, /) -> Any:
    return torch.sym_float(number) ** power


def _open_len(value: Any, /) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.ndim else len(value)


_BUILTINS: dict[str, Any] = {"int": _OpenInt, "float": _OpenFloat, "len": _open_len}
_OF_SIZES: dict[str, Callable[..., Any]] = {
    "sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "log": _log_of_sizes,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
    "pow": _pow_of_sizes,
}
_OF_VALUES = ("log1p", "expm1", "sin", "cos", "tan", "tanh", "atan")
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    math.isqrt: _open_isqrt,
    **{getattr(math, name): _open_function(name, _OF_SIZES.get(name)) for name in (*_OF_SIZES, *_OF_VALUES)},
}


class _OpenMath:
    """The module math, with functions that leave open what is open."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        return _FUNCTIONS.get(value, value) if callable(value) else value
