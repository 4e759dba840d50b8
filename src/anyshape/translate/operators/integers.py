"""Whole numbers: divisions that round, greatest common divisors, shifts.

Division that rounds: aten::floor_divide, div with a rounding mode, and remainder, as torch computes them.

torch takes the exact remainder first, (a - fmod(a, b)) / b; the quotient a / b may already have been rounded up to the
next whole number. torch.onnx (to 2.13) floors that quotient, divides integers in single precision, and takes every scalar
for a constant.

Whole numbers: prims::gcd (Euclid's rounds, of all elements at once), aten::sym_numel, shifts, and frexp, which takes the
power of two out of a float.

torch.onnx (to 2.13) has none of these, and shifts of signed numbers to the right only as shifts of unsigned ones.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import NARROW, Values, as_scalar, constant, dtype_of, repeat

Other = ir.Value | float


def translate_floor_divide(x: Other, other: Other) -> ir.Value:
    dtype = _common_dtype(x, other)
    if not dtype.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return core.aten_floor_divide(_typed(x, dtype), _of_dtype(other, dtype))
    wide = _wide(dtype)
    one, two = _of_dtype(x, wide), _of_dtype(other, wide)
    return _of_dtype(floored_quotient(one, two, wide), dtype)


def floored_quotient(x: ir.Value, other: ir.Value, dtype: ir.DataType) -> ir.Value:
    zero, quotient, rest = constant(0, dtype), op.Div(x, other), op.Mod(x, other, fmod=1)
    whole = op.Sub(op.Div(op.Sub(x, rest), other), op.Cast(_points_away(rest, other, zero), to=dtype))
    floor = op.Floor(whole)
    is_above = op.Greater(op.Sub(whole, floor), constant(0.5, dtype))
    rounded = op.Add(floor, op.Cast(is_above, to=dtype))
    signed = op.Where(op.Equal(whole, zero), op.Mul(zero, quotient), rounded)  # -0 where the signs differ
    return op.Where(op.Equal(other, zero), quotient, signed)


def _points_away(rest: ir.Value, other: ir.Value, zero: ir.Value) -> ir.Value:
    """Where the remainder of a division towards zero has not the divisor's sign."""
    has_other_sign = op.Xor(op.Less(rest, zero), op.Less(other, zero))
    return op.And(op.Not(op.Equal(rest, zero)), has_other_sign)


def translate_remainder(x: Other, other: Other) -> ir.Value:
    """With the sign of the divisor."""
    dtype = _common_dtype(x, other)
    if not dtype.is_floating_point():
        return op.Mod(_of_dtype(x, dtype), _of_dtype(other, dtype))
    wide = _wide(dtype)
    return _of_dtype(remainder_of(_of_dtype(x, wide), _of_dtype(other, wide), wide), dtype)


def remainder_of(x: ir.Value, divisor: ir.Value, dtype: ir.DataType) -> ir.Value:
    rest = op.Mod(x, divisor, fmod=1)
    return op.Where(_points_away(rest, divisor, constant(0, dtype)), op.Add(rest, divisor), rest)


def translate_div_mode(x: Other, other: Other, *, rounding_mode: str | None = None) -> ir.Value:
    dtype = _common_dtype(x, other)
    if rounding_mode == "floor":
        return translate_floor_divide(x, other)
    if rounding_mode == "trunc" and not dtype.is_floating_point():
        return op.Div(_of_dtype(x, dtype), _of_dtype(other, dtype))
    from onnxscript.function_libs.torch_lib.ops import core

    return core.aten_div_mode(_typed(x, dtype), _of_dtype(other, dtype), rounding_mode=rounding_mode)


def _common_dtype(x: Other, other: Other) -> ir.DataType:
    """Of the tensor, where one of the two is a number: torch has converted it before, where another is wanted."""
    return dtype_of(next(each for each in (x, other) if isinstance(each, ir.Value)))


def _typed(x: Other, dtype: ir.DataType) -> ir.Value:
    value = _of_dtype(x, dtype)
    value.type = value.type or ir.TensorType(dtype)
    return value


def _wide(dtype: ir.DataType) -> ir.DataType:
    return ir.DataType.FLOAT if dtype in NARROW else dtype


def _of_dtype(number: Other, dtype: ir.DataType) -> ir.Value:
    if not isinstance(number, ir.Value):
        return constant(number, dtype)
    return number if number.dtype == dtype else op.Cast(number, to=dtype)


_INT64, _DOUBLE = ir.DataType.INT64, ir.DataType.DOUBLE
_UNSIGNED = (ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)
_MOST_ROUNDS = 92
"""Neighbouring Fibonacci numbers take the most rounds, and an int64 holds 92 of them."""


def translate_gcd(x: ir.Value, other: ir.Value) -> ir.Value:
    dtype = dtype_of(x)
    zero, one = constant(0, _INT64), constant(1, _INT64)
    shape = op.Shape(op.Add(x, other))
    pair = [op.Expand(op.Abs(op.Cast(value, to=_INT64)), shape) for value in (x, other)]

    def divide(number: ir.Value, greater: ir.Value, smaller: ir.Value) -> Values:
        is_done = op.Equal(smaller, zero)
        rest = op.Mod(greater, op.Where(is_done, one, smaller))
        return [op.Where(is_done, greater, smaller), op.Where(is_done, zero, rest)]

    greater, _ = repeat(_MOST_ROUNDS, [(value, _INT64) for value in pair], divide)
    return op.Cast(greater, to=dtype)


def translate_numel(x: ir.Value) -> ir.Value:
    return as_scalar(op.Size(x))


def translate_left_shift(x: ir.Value | int, count: ir.Value | int) -> ir.Value:
    """A product that wraps. Where the count is negative, or as large as the dtype has bits, nothing is left."""
    dtype, (wide, places) = _shifted(x, count)
    is_inside = op.And(op.GreaterOrEqual(places, constant(0, _INT64)), op.Less(places, constant(64, _INT64)))
    factors = constant([*(2**place for place in range(63)), -(2**63), 0], _INT64)
    factor = op.Gather(factors, op.Where(is_inside, places, constant(64, _INT64)))
    return op.Cast(op.Mul(wide, factor), to=dtype)


def translate_right_shift(x: ir.Value | int, count: ir.Value | int) -> ir.Value:
    """A quotient that is rounded down. Where the count is negative, or too large for the dtype, the sign is left."""
    dtype, (wide, places) = _shifted(x, count)
    most, zero = constant(63, _INT64), constant(0, _INT64)
    is_inside = op.And(op.GreaterOrEqual(places, zero), op.Less(places, most))
    divisors = constant([2**place for place in range(63)], _INT64)
    divisor = op.Gather(divisors, op.Where(is_inside, places, zero))
    quotient = op.Div(op.Sub(wide, op.Mod(wide, divisor)), divisor)  # Mod is never negative here: no remainder is left
    sign = op.Where(op.Less(wide, zero), constant(-1, _INT64), zero)
    return op.Cast(op.Where(is_inside, quotient, sign), to=dtype)


def _shifted(x: ir.Value | int, count: ir.Value | int) -> tuple[ir.DataType, list[ir.Value]]:
    """The dtype of the result, and both operands in 64 bits; a Python number takes the dtype of the tensor."""
    dtypes = [dtype_of(value) for value in (x, count) if isinstance(value, ir.Value)]
    dtype = dtypes[0] if len(set(dtypes)) == 1 else _INT64 if _INT64 in dtypes else max(dtypes, key=_range_of)
    return dtype, [
        constant(value, _INT64) if isinstance(value, int) else op.Cast(value, to=_INT64) for value in (x, count)
    ]


def _range_of(dtype: ir.DataType) -> int:
    """How many numbers a dtype has, signed ones before unsigned ones."""
    return 2 * int(dtype.bitwidth) + (dtype not in _UNSIGNED)


def translate_frexp(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """x = mantissa * 2^exponent with a mantissa in [0.5, 1); zero, infinities and NaN as they are."""
    wide = op.Cast(x, to=_DOUBLE)
    zero, one, two = (constant(number, _DOUBLE) for number in (0, 1, 2))
    size = op.Abs(wide)
    is_plain = op.And(op.Less(size, constant(math.inf, _DOUBLE)), op.Greater(size, zero))
    safe = op.Where(is_plain, size, one)
    guess = op.Add(op.Floor(op.Div(op.Log(safe), constant(math.log(2), _DOUBLE))), one)
    share = op.Div(safe, op.Pow(two, guess))
    # A logarithm may be off by one at a power of two.
    up, down = op.GreaterOrEqual(share, one), op.Less(share, constant(0.5, _DOUBLE))
    exponent = op.Add(guess, op.Sub(op.Cast(up, to=_DOUBLE), op.Cast(down, to=_DOUBLE)))
    mantissa = op.Where(is_plain, op.Div(wide, op.Pow(two, exponent)), wide)
    power = op.Where(is_plain, exponent, zero)
    return op.Cast(mantissa, to=dtype_of(x)), op.Cast(power, to=ir.DataType.INT32)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "remainder.Scalar": translate_remainder,
    "remainder.Scalar_Tensor": translate_remainder,
    "remainder.Tensor": translate_remainder,
    "prims::remainder": translate_remainder,
    "floor_divide": translate_floor_divide,
    "floor_divide.Scalar": translate_floor_divide,
    "div.Tensor_mode": translate_div_mode,
    "div.Scalar_mode": translate_div_mode,
    "prims::gcd": translate_gcd,
    "bitwise_left_shift.Tensor": translate_left_shift,
    "bitwise_left_shift.Tensor_Scalar": translate_left_shift,
    "bitwise_left_shift.Scalar_Tensor": translate_left_shift,
    "__lshift__.Tensor": translate_left_shift,
    "__lshift__.Scalar": translate_left_shift,
    "bitwise_right_shift.Tensor": translate_right_shift,
    "bitwise_right_shift.Tensor_Scalar": translate_right_shift,
    "bitwise_right_shift.Scalar_Tensor": translate_right_shift,
    "__rshift__.Tensor": translate_right_shift,
    "__rshift__.Scalar": translate_right_shift,
    "prims::frexp": translate_frexp,
    "sym_numel": translate_numel,
}
