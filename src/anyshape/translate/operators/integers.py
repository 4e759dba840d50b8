"""Whole numbers: prims::gcd (Euclid's rounds, of all elements at once), aten::sym_numel, shifts, and frexp, which takes the
power of two out of a float.

torch.onnx (to 2.13) has none of these, and shifts of signed numbers to the right only as shifts of unsigned ones.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.loop_nodes import Values, repeat
from anyshape.translate.operators.size_values import as_scalar, constant, dtype_of

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
