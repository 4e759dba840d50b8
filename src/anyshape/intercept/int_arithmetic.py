"""Python's arithmetic of ints and floats on tensors without axes (int64, float64), and the torch functions that it is used for.

What leaves 64 bits raises, and what Python raises for raises too (a division by 0, a shift by less than 0): by a look-up
beyond the end of a table of one entry, which PyTorch and every ONNX runtime refuse.

    k += 1 (add_)           ->   add(k, 1): Python's numbers never change in place
    7 // k (__rfloordiv__)  ->   floordiv(7, k)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import SymFloat

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "min": torch.sym_min,
    "max": torch.sym_max,
}
WHOLE_DTYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
COMPARISONS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}

_LARGEST = 9.2e18  # a little below 2**63, so that rounding in double precision cannot hide an overflow
_EXACT = 2.0**53  # onnxruntime computes powers of ints in double precision
_MOST_BITS = 62
_FEW_FACTORS = 4
Decide = Callable[[torch.Tensor], bool]
_ARITHMETIC = ("add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")
_IN_PLACE = {f"i{name}": name for name in _ARITHMETIC}
_REVERSED = {f"r{name}": name for name in _ARITHMETIC}
_ALIKE = {
    "truediv": "div",
    "true_divide": "div",
    "divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "multiply": "mul",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
    "positive": "pos",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "invert",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
}
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_ONE = ("neg", "pos", "abs", "invert")
_OTHERS = (
    *("where", "masked_fill", "clamp", "clip", "clamp_min", "clamp_max", "minimum", "maximum", "fmin", "fmax", "fmod"),
    *(
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "isclose",
        "lerp",
        "fill",
        "to",
        "type_as",
        "float_power",
    ),
    *("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "atan", "floor", "ceil"),
    *("round", "trunc", "isfinite", "isnan", "isinf", "sign", "square", "reciprocal", "addcmul", "addcdiv"),
)
_PLAIN = {*_ARITHMETIC, *_IN_PLACE, *_REVERSED, *_ALIKE, *_COMPARED, *_ONE, *_OTHERS}
ELEMENTWISE = {form for name in _PLAIN for form in (name, f"{name}_", f"__{name}__")}
"""Names of functions that take a number as a tensor of one element; all others need an int."""


def raising_where(is_wrong: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The value; a program that runs this raises where `is_wrong` is true."""
    zero = torch.zeros(1, dtype=torch.int64, device=value.device).index_select(0, is_wrong.reshape(1).to(torch.int64))
    return value + zero.reshape(()).to(value.dtype)


def as_double(value: Any) -> Any:
    """A tensor in double precision; other numbers as they are."""
    return value.to(torch.float64) if isinstance(value, torch.Tensor) else value


def fitting(number: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The number in a dtype of whole numbers; raises where it does not fit, as PyTorch does of a Python int."""
    if dtype in (torch.int64, torch.bool) or number.is_floating_point():
        return number.to(dtype)
    ends = torch.iinfo(dtype)
    low = ends.min if ends.min < 0 else -ends.max  # PyTorch lets negative numbers wrap around
    number = number.to(torch.int64)
    return raising_where((number < low) | (number > ends.max), number).to(dtype)


def computed(name: str, operands: tuple[Any, ...], decide: Decide) -> torch.Tensor:
    """The operation's result, as Python computes it: an int64, a float64 or a bool tensor."""
    operands = tuple(_without_bool(each) for each in operands)
    if name in COMPARISONS:
        return _compared(name, operands)
    if name == "div" or any(is_float(each) for each in operands):
        return _of_floats(name, operands)
    if len(operands) == 1:
        return _of_one(name, operands[0])
    left, right = operands
    return _of_ints(name, left, right, decide)


def _of_one(name: str, number: torch.Tensor) -> torch.Tensor:
    if name == "invert":
        return -number - 1
    return {"neg": torch.neg, "abs": torch.abs}.get(name, torch.clone)(number)


def _compared(name: str, operands: tuple[Any, ...]) -> torch.Tensor:
    if any(is_float(each) for each in operands):
        operands = tuple(as_double(each) for each in operands)
    return COMPARISONS[name](*operands)  # type: ignore[no-any-return]


def _of_floats(name: str, operands: tuple[Any, ...]) -> torch.Tensor:
    doubles = [as_double(each) for each in operands]
    if name in ("div", "floordiv", "mod"):
        doubles[1] = _not_zero(doubles[1])
    if name in ("min", "max"):
        both = [_tensor(each, torch.float64) for each in doubles]
        return torch.minimum(*both) if name == "min" else torch.maximum(*both)
    return OPERATIONS[name](*doubles)  # type: ignore[no-any-return]


def _of_ints(name: str, left: Any, right: Any, decide: Decide) -> torch.Tensor:
    if name in ("add", "sub", "mul"):
        result = OPERATIONS[name](left, right)
        return raising_where(OPERATIONS[name](as_double(left), as_double(right)).abs() >= _LARGEST, result)
    left, right = _tensor(left, torch.int64), _not_zero(right) if name in ("floordiv", "mod") else right
    if name == "pow":
        return _power(left, right, decide)
    right = _tensor(right, torch.int64)
    if name in ("lshift", "rshift"):
        return _shifted(name, left, right)
    simple: dict[str, Callable[..., torch.Tensor]] = {
        "floordiv": torch.floor_divide,
        "mod": torch.remainder,
        "and": torch.bitwise_and,
        "or": torch.bitwise_or,
        "xor": torch.bitwise_xor,
        "min": torch.minimum,
        "max": torch.maximum,
    }
    return simple[name](left, right)


def _power(base: torch.Tensor, exponent: Any, decide: Decide) -> torch.Tensor:
    """An int where the exponent is 0 or more, a float where it is less."""
    if isinstance(exponent, int) and 0 <= exponent <= _FEW_FACTORS:
        product = torch.ones_like(base)
        for _ in range(exponent):
            product = _of_ints("mul", product, base, decide)
        return product
    is_whole = decide(exponent >= 0) if isinstance(exponent, torch.Tensor) else exponent >= 0
    floats = base.to(torch.float64) ** as_double(exponent)
    if not is_whole:
        return raising_where(base == 0, floats)
    return raising_where(floats.abs() >= _EXACT, floats).to(torch.int64)


def _shifted(name: str, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    bits = raising_where(right < 0, right)
    factor = (2.0 ** bits.clamp(0, _MOST_BITS).to(torch.float64)).to(torch.int64)
    if name == "rshift":
        return torch.floor_divide(left, factor)
    approximate = left.to(torch.float64) * 2.0 ** bits.to(torch.float64)
    return raising_where(approximate.abs() >= _LARGEST, left * factor)


def _not_zero(divisor: Any) -> Any:
    if not isinstance(divisor, torch.Tensor):
        return divisor
    return raising_where(divisor == 0, divisor)


def _tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.scalar_tensor(value, dtype=dtype)


def _without_bool(value: Any) -> Any:
    return value.to(torch.int64) if isinstance(value, torch.Tensor) and value.dtype == torch.bool else value


def is_float(value: Any) -> bool:
    """Whether a Python number or a tensor is of a floating-point type."""
    return isinstance(value, (float, SymFloat)) or (isinstance(value, torch.Tensor) and value.is_floating_point())


def plain_call(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The operation's name without underscores, and its operands from left to right."""
    name = getattr(func, "__name__", "").strip("_")
    name = _IN_PLACE.get(name, name)
    if name in _REVERSED:
        name, args = _REVERSED[name], args[::-1]
    return _ALIKE.get(name, name), args
