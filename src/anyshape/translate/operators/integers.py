"""Whole numbers: divisions that round, greatest common divisors, shifts, and products and powers, which wrap around in 64 bits.

Division that rounds: aten::floor_divide, div with a rounding mode, and remainder, as torch computes them. torch takes the exact
remainder first, (a - fmod(a, b)) / b; the quotient a / b may already have been rounded up to the next whole number. torch.onnx
(to 2.13) floors that quotient, divides integers in single precision, and takes every scalar for a constant.

prims::gcd (Euclid's rounds, of all elements at once), aten::sym_numel and shifts: torch.onnx (to 2.13) has none of these, and
shifts of signed numbers to the right only as shifts of unsigned ones.

aten::prod, and pow with open exponents: onnxruntime's ReduceProd and Pow of integers go by way of doubles, exact up to 2**53,
and the largest integer beyond 2**63 (seen to 1.31).
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    NARROW,
    Values,
    accumulate,
    as_scalar,
    constant,
    count_halvings,
    dtype_of,
    flattened,
    ints,
    positive,
    rank,
    repeat,
    size_scalar,
    static_size,
)

Other = ir.Value | float
_INT64, _DOUBLE = ir.DataType.INT64, ir.DataType.DOUBLE
_UNSIGNED = (ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)
_MOST_ROUNDS = 92
"""Neighbouring Fibonacci numbers take the most rounds, and an int64 holds 92 of them."""
_FEW = 8
"""So many factors are multiplied one by one."""
_KINDS = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")


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


def translate_prod(x: ir.Value, *, dtype: int | None = None) -> ir.Value:
    values, wanted = _given(x, dtype)
    if wanted.is_floating_point():
        return op.ReduceProd(values, keepdims=0)
    return op.Cast(_multiplied(flattened(values), 0, keepdim=False), to=wanted)


def translate_prod_dim(x: ir.Value, dim: int, keepdim: bool = False, *, dtype: int | None = None) -> ir.Value:
    values, wanted = _given(x, dtype)
    if rank(x) == 0:
        return op.Identity(values)
    axis = positive(dim, rank(x))
    if wanted.is_floating_point():
        return op.ReduceProd(values, ints(axis), keepdims=int(keepdim))
    return op.Cast(_multiplied(values, axis, keepdim), to=wanted)


def _given(x: ir.Value, dtype: int | None) -> tuple[ir.Value, ir.DataType]:
    given = dtype_of(x)
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else given if given.is_floating_point() else _INT64
    values = x if wanted == given else op.Cast(x, to=wanted)
    values = values if wanted.is_floating_point() or wanted == _INT64 else op.Cast(values, to=_INT64)
    values.shape = x.shape
    return values, wanted


def _multiplied(x: ir.Value, axis: int, keepdim: bool) -> ir.Value:
    known = static_size(x, axis)
    if known is not None and 1 <= known <= _FEW:
        product = op.Gather(x, ints(0), axis=axis)
        for place in range(1, known):
            product = op.Mul(product, op.Gather(x, ints(place), axis=axis))
    else:
        shape = op.Shape(x)
        before = op.Slice(shape, ints(0), ints(axis), ints(0))
        after = op.Slice(shape, ints(axis + 1), ints(2**31), ints(0))
        one = op.Expand(constant(1, _INT64), op.Concat(before, ints(1), after, axis=0))
        all_of_them = op.Concat(one, x, axis=axis)  # there may be none
        size = op.Add(size_scalar(x, axis), constant(1, _INT64))
        (prefixes,) = accumulate([(all_of_them, _INT64)], axis, size, rank(x), _product)
        product = op.Slice(prefixes, ints(-1), ints(2**31), ints(axis))
    return product if keepdim else op.Squeeze(product, ints(axis))


def _product(earlier: Values, later: Values) -> Values:
    return [op.Mul(earlier[0], later[0])]


def translate_power(x: ir.Value | float, exponent: ir.Value | float) -> ir.Value:
    tensors = [each for each in (x, exponent) if isinstance(each, ir.Value)]
    dtype = dtype_of(tensors[0])
    is_whole = not any(isinstance(each, float) for each in (x, exponent))
    if not is_whole or any(dtype_of(each).is_floating_point() for each in tensors):
        return op.Pow(*(each if isinstance(each, ir.Value) else constant(each, dtype) for each in (x, exponent)))
    if not isinstance(x, ir.Value) and x == 2:
        return translate_left_shift(1, tensors[0])
    base, times = (
        op.Cast(each, to=_INT64) if isinstance(each, ir.Value) else constant(each, _INT64) for each in (x, exponent)
    )
    return op.Cast(_whole_power(base, times), to=_result_dtype(tensors))


def _result_dtype(tensors: Sequence[ir.Value]) -> ir.DataType:
    """That of torch for integers: the wider one of two; a tensor without axes counts less."""
    if len(tensors) == 1:
        return dtype_of(tensors[0])
    likes = [torch.from_numpy(np.ones([1] * rank(each), dtype_of(each).numpy())) for each in tensors]
    return ir.DataType.from_numpy(torch.empty(0, dtype=torch.result_type(*likes)).numpy().dtype)


def _whole_power(base: ir.Value, times: ir.Value) -> ir.Value:
    """By squaring. With a negative exponent, torch gives 0 but for 1 and -1, whose powers are those of its distance."""
    shape = op.Shape(op.Add(base, times))
    zero, one, two = (constant(number, _INT64) for number in (0, 1, 2))
    base, times = op.Expand(base, shape), op.Expand(times, shape)
    is_below = op.Less(times, zero)
    distance = op.Where(is_below, op.Neg(times), times)
    rounds = op.Add(count_halvings(op.ReduceMax(op.Concat(flattened(distance), ints(0), axis=0), keepdims=0)), one)

    def square(number: ir.Value, result: ir.Value, power: ir.Value, left: ir.Value) -> Values:
        is_odd = op.Equal(op.Mod(left, two), one)
        return [op.Where(is_odd, op.Mul(result, power), result), op.Mul(power, power), op.Div(left, two)]

    states = [(op.Expand(one, shape), _INT64), (base, _INT64), (distance, _INT64)]
    result, *_ = repeat(rounds, states, square)
    is_unit = op.Or(op.Equal(base, one), op.Equal(base, constant(-1, _INT64)))
    return op.Where(op.And(is_below, op.Not(is_unit)), zero, result)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("remainder.Scalar", "remainder.Scalar_Tensor", "remainder.Tensor"), translate_remainder),
    "prims::remainder": translate_remainder,
    "floor_divide": translate_floor_divide,
    "floor_divide.Scalar": translate_floor_divide,
    "div.Tensor_mode": translate_div_mode,
    "div.Scalar_mode": translate_div_mode,
    "prims::gcd": translate_gcd,
    **{f"bitwise_left_shift.{kind}": translate_left_shift for kind in _KINDS},
    **{f"bitwise_right_shift.{kind}": translate_right_shift for kind in _KINDS},
    **dict.fromkeys(("__lshift__.Tensor", "__lshift__.Scalar"), translate_left_shift),
    **dict.fromkeys(("__rshift__.Tensor", "__rshift__.Scalar"), translate_right_shift),
    "sym_numel": translate_numel,
    "prod": translate_prod,
    "prod.dim_int": translate_prod_dim,
    "pow.Tensor_Tensor": translate_power,
    "pow.Scalar": translate_power,
}
