"""While a module is captured with open sizes, `int`, `len`, `math`, numpy in the user's own code keep sizes open.

    int(x.shape[1] * 0.3)     torch: the traced size, frozen     ->     here: the size, truncated, and still a size

Python's `int()` needs a real number, so torch freezes the traced one. While this is entered, calls of `int`, `float`, `len`,
`min` and other builtins in the user's functions are redirected to functions that keep sizes (see `call_sites`), and `math`,
numpy and torch in their globals are replaced by objects that do (see `patching`). In other threads all of them do what the
originals do.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import reduce
from typing import Any, TypeVar

import torch
from torch import SymFloat, SymInt

from anyshape.intercept.call_sites import ArraysAsTensors, open_torch, redirected_calls
from anyshape.intercept.decided_conditions import Lines, decided_conditions, lines_to_decide
from anyshape.intercept.joined_branches import WrittenLaterError, check_unwritten, joined_branches
from anyshape.intercept.open_arrays import OpenArray, as_tensors, open_numpy
from anyshape.intercept.open_ranges import open_range
from anyshape.intercept.patching import (
    Patch,
    capturing,
    is_capturing,
    patched,
    uncached,
    uncached_functions,
)
from anyshape.intercept.real_numbers import (
    OPEN_EXP,
    OPEN_LOG,
    OPEN_LOG2,
    OPEN_LOG10,
    is_python_number,
    larger,
    real_number,
    smaller,
    whole_number,
)
from anyshape.intercept.size_tensors import Rounding, SizeTensors
from anyshape.modules.user_code import functions_beside

T = TypeVar("T")
_REAL = (float, SymFloat)
_OF_VALUES = ("log1p", "expm1", "sin", "cos", "tan", "tanh", "atan")


@contextmanager
def open_numbers(
    module: torch.nn.Module, noted: list[Rounding] | None = None, *, joins: bool = True, opens_arrays: bool = True
) -> Iterator[None]:
    """While it is entered, the user's own code leaves sizes open in this thread. Other threads see no difference.

    `noted` gets the lines that `SizeTensors` notes. `joins`: branches are joined where that is possible. `opens_arrays`: numpy
    is replaced as well; numpy itself keeps sizes in arrays of objects, and asks about one where it compares them.
    """
    functions = functions_beside(module)
    spaces = {id(function.__globals__): function.__globals__ for function in functions}
    found = [*uncached_functions(module), *(each for space in spaces.values() for each in _replaced(space))]
    arrays = [each for space in spaces.values() for each in _replaced_arrays(space)] if opens_arrays else []
    if arrays:
        found += [*arrays, *(each for space in spaces.values() for each in _replaced_torch(space))]
    with (
        capturing(),
        patched(found),
        joined_branches(functions if joins else ()),
        redirected_calls(functions, _CALLS),
        ArraysAsTensors() if arrays else nullcontext(),
        SizeTensors([] if noted is None else noted),
    ):
        yield


def run_open(module: torch.nn.Module, run: Callable[[], T], noted: list[Rounding] | None = None) -> T:
    """The result of `run` with int, float and others replaced so that sizes stay symbolic; without the replacements where
    torch does not take one of them (`x.to(float)` needs the real float), those of numpy first. `noted`: see `open_numbers`."""
    decided: frozenset[Lines] = frozenset()
    while True:
        try:
            with decided_conditions(decided):
                return _run_joined(module, run, noted)
        except (TypeError, ValueError) as error:
            further = lines_to_decide(error, decided) if isinstance(error, TypeError) else decided
            if further == decided:
                break
            decided = further
    if _uses_arrays(module):
        with suppress(TypeError, ValueError), open_numbers(module, noted, opens_arrays=False):
            return run()
    with uncached(module):
        return run()


def _uses_arrays(module: torch.nn.Module) -> bool:
    spaces = {id(function.__globals__): function.__globals__ for function in functions_beside(module)}
    return any(True for space in spaces.values() for _ in _replaced_arrays(space))


def _run_joined(module: torch.nn.Module, run: Callable[[], T], noted: list[Rounding] | None) -> T:
    """The result of `run` with joined branches; without them where one cannot be joined after all."""
    try:
        with open_numbers(module, noted):
            result = run()
            check_unwritten()
            return result
    except WrittenLaterError:
        with open_numbers(module, noted, joins=False):
            return run()


def _replaced(space: dict[str, Any]) -> Iterator[Patch]:
    """Replacements for `math` and for the functions that were imported from it."""
    for name, value in list(space.items()):
        if value is math:
            yield space, name, _OpenMath()
        elif callable(value) and _is_known(value):
            yield space, name, _FUNCTIONS[value]


def _replaced_arrays(space: dict[str, Any]) -> Iterator[Patch]:
    """Replacements for numpy and for what was imported from it."""
    for name, value in list(space.items()):
        if (opened := open_numpy(value)) is not None:
            yield space, name, opened


def _replaced_torch(space: dict[str, Any]) -> Iterator[Patch]:
    """Replacements for torch, where numpy is in use: some of its functions take arrays."""
    for name, value in list(space.items()):
        if (opened := open_torch(value)) is not None:
            yield space, name, opened


def _is_known(value: Any) -> bool:
    return any(value is known for known in _FUNCTIONS)  # by identity: a hash may be computed by code of the user's


def _open_int(*args: Any, **kwargs: Any) -> Any:
    """int() that keeps symbolic sizes symbolic: SymInt -> itself, SymFloat -> truncated, tensor -> a recorded question."""
    if len(args) == 1 and not kwargs:
        if isinstance(args[0], (SymInt, SymFloat)):
            return args[0] if isinstance(args[0], SymInt) else torch.sym_int(args[0])
        if isinstance(args[0], (torch.Tensor, OpenArray)):
            return whole_number(as_tensors(args[0]))
    return int(*args, **kwargs)


def _open_float(*args: Any) -> Any:
    """float() that keeps symbolic sizes symbolic: SymInt -> SymFloat, tensor or array -> a recorded question."""
    if len(args) == 1:
        if isinstance(args[0], (SymInt, SymFloat)):
            return torch.sym_float(args[0])
        if isinstance(args[0], (torch.Tensor, OpenArray)):
            return real_number(as_tensors(args[0]))
    return float(*args)


def _open_len(value: Any, /) -> Any:
    """len() that keeps symbolic sizes symbolic: tensor -> its first size."""
    if isinstance(value, torch.Tensor) and value.ndim:
        return value.shape[0]
    return len(value)


def _open_map(function: Any, /, *iterables: Any) -> Any:
    """map() whose function may be one of the three builtins above: `map(int, x.shape)`."""
    return map(next((ours for own, ours in _PASSED if function is own), function), *iterables)


def _open_function(name: str, of_sizes: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """math's function of that name, which leaves sizes open and takes a float that was asked of values as a tensor."""
    own = getattr(math, name)

    def open_function(*numbers: Any) -> Any:
        if of_sizes is not None and any(isinstance(number, (SymInt, SymFloat)) for number in numbers):
            return of_sizes(*numbers)
        real = [real_number(number) if isinstance(number, torch.Tensor) else number for number in numbers]
        if of_sizes is not None and any(isinstance(number, SymFloat) for number in real):
            return of_sizes(*real)
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


def _open_extreme(name: str, of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """min() and max(): of floats that are computed from sizes, or with a tensor without axes among the values, a choice that
    decides nothing; torch.export (to 2.13) leaves only that of sizes open.
    """
    of_floats = torch.sym_min if name == "min" else torch.sym_max

    def open_extreme(*values: Any, **kwargs: Any) -> Any:
        given = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        if len(given) > 1 and not kwargs:
            if len(values) > 1 and any(_is_scalar(value) for value in values):
                return of_numbers(*values)
            if any(isinstance(each, SymFloat) for each in given) and all(isinstance(each, _REAL) for each in given):
                return reduce(of_floats, given)
        own = getattr(builtins, name)  # looked up late: torch.export puts its own there for a while
        return own(*values, **kwargs)

    return open_extreme


def _is_scalar(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 0


def _open_round(number: Any, ndigits: Any = None) -> Any:
    """round() to a whole number: half of them to the even one, as torch does it. Sizes also to tens, hundreds, ..."""
    if isinstance(number, SymInt) and isinstance(ndigits, int):
        return _round_size(number, 10**-ndigits) if ndigits < 0 else number
    real = real_number(number) if _is_scalar(number) else number
    if isinstance(real, torch.Tensor) and ndigits is None:
        return whole_number(torch.round(real))
    return round(real) if ndigits is None else round(real, ndigits)


def _round_size(size: SymInt, step: int) -> Any:
    """The closest multiple of an even step; in the middle, the one that is an even number of steps."""
    steps = size // step
    is_up = (2 * (size % step) + steps % 2) // (step + 1)
    return (steps + is_up) * step


def _open_divmod(left: Any, right: Any, /) -> Any:
    is_open = any(_is_scalar(each) or isinstance(each, (SymInt, SymFloat)) for each in (left, right))
    return (left // right, left % right) if is_open else divmod(left, right)


def _open_rounding(name: str) -> Callable[[Any], Any]:
    """math.floor, ceil or trunc, a whole number also of a float that was read from a tensor."""
    own = getattr(math, name)

    def open_rounding(number: Any, /) -> Any:
        if not _is_scalar(number):
            return own(number)
        real = real_number(number)
        return whole_number(getattr(torch, name)(real)) if isinstance(real, torch.Tensor) else own(real)

    return open_rounding


def _open_isinstance(value: Any, kinds: Any, /) -> bool:
    """isinstance(), to which numbers that were read from tensors are ints and floats."""
    if isinstance(value, kinds) or not is_python_number(value):
        return isinstance(value, kinds)
    with torch._C.DisableTorchFunction():
        own = float if value.is_floating_point() else int
    return own in (kinds if isinstance(kinds, tuple) else (*getattr(kinds, "__args__", ()), kinds))


def _in_capture(name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Our function in a thread that captures, the builtin of that name in every other."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (ours if is_capturing() else getattr(builtins, name))(*args, **kwargs)

    return call


_PASSED: tuple[tuple[Any, Callable[..., Any]], ...] = ((int, _open_int), (float, _open_float), (len, _open_len))
_BUILTINS: dict[str, Callable[..., Any]] = {
    "int": _open_int,
    "float": _open_float,
    "len": _open_len,
    "map": _open_map,
    "min": _open_extreme("min", smaller),
    "max": _open_extreme("max", larger),
    "round": _open_round,
    "divmod": _open_divmod,
    "isinstance": _open_isinstance,
    "range": open_range,
}
_CALLS = {name: _in_capture(name, ours) for name, ours in _BUILTINS.items()}
_OF_SIZES: dict[str, Callable[..., Any]] = {
    "sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "log": _log_of_sizes,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
    "pow": _pow_of_sizes,
}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    math.isqrt: _open_isqrt,
    **{getattr(math, name): _open_rounding(name) for name in ("floor", "ceil", "trunc")},
    **{getattr(math, name): _open_function(name, _OF_SIZES.get(name)) for name in (*_OF_SIZES, *_OF_VALUES)},
}


class _OpenMath:
    """The module math, with functions that leave open what is open."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        return _FUNCTIONS.get(value, value) if callable(value) else value
