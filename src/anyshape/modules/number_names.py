"""Which torch functions compute with a number element by element, and what plain operation a call of them is.

k += 1 (add_)      ->   add(k, 1): Python's numbers never change in place
7 // k (__rfloordiv__)  ->   floordiv(7, k)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def plain_call(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The operation's name without underscores, and its operands from left to right."""
    name = getattr(func, "__name__", "").strip("_")
    name = _IN_PLACE.get(name, name)
    if name in _REVERSED:
        name, args = _REVERSED[name], args[::-1]
    return _ALIKE.get(name, name), args
