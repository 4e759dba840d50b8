"""Division that rounds: aten::floor_divide, div with a rounding mode, and remainder, as torch computes them.

torch takes the exact remainder first, (a - fmod(a, b)) / b; the quotient a / b may already have been rounded up to the
next whole number. torch.onnx (to 2.13) floors that quotient, divides integers in single precision, and takes every scalar
for a constant.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import NARROW, constant, dtype_of

Other = ir.Value | float


def translate_floor_divide(x: Other, other: Other) -> ir.Value:
    dtype = _common_dtype(x, other)
    if not dtype.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return core.aten_floor_divide(_typed(x, dtype), _of_dtype(other, dtype))
    wide = _wide(dtype)
    one, two = _of_dtype(x, wide), _of_dtype(other, wide)
    return _of_dtype(_floored(one, two, wide), dtype)


def _floored(x: ir.Value, other: ir.Value, dtype: ir.DataType) -> ir.Value:
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
    divisor, zero = _of_dtype(other, wide), constant(0, wide)
    rest = op.Mod(_of_dtype(x, wide), divisor, fmod=1)
    return _of_dtype(op.Where(_points_away(rest, divisor, zero), op.Add(rest, divisor), rest), dtype)


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
