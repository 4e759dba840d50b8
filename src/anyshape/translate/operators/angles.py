"""aten::atan2 and angle: in all four quadrants, with the signs of zeros, infinities and NaN as C has them.

onnxscript's (torch 2.13) take `atan(y / x)` and correct it by comparisons with 0: at (0, -1) and at (-0.0, -1) the sign is
wrong. The angle of a real NaN is 0 there, and that of complex doubles has no kernel in onnxruntime.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.complex_numbers import split
from anyshape.translate.operators.elementwise import translate_signbit, with_sign
from anyshape.translate.operators.size_values import NARROW, constant, dtype_of

_SINGLE, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


def translate_atan2(y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle in the first quadrant, mirrored where x is negative, with the sign of y."""
    given = dtype_of(y)
    if given == _DOUBLE:
        return _in_quadrants(y, x, _first_quadrant_in_doubles(op.Abs(y), op.Abs(x)), _DOUBLE)
    wide = [op.Cast(value, to=_SINGLE) if dtype_of(value) != _SINGLE else value for value in (y, x)]
    for value in wide:
        value.type = ir.TensorType(_SINGLE)
    angle = _in_quadrants(wide[0], wide[1], _first_quadrant(op.Abs(wide[0]), op.Abs(wide[1]), _SINGLE), _SINGLE)
    return op.Cast(angle, to=given) if given in NARROW else angle


def translate_angle(x: ir.Value) -> ir.Value:
    """Of real numbers: 0 or pi; NaN stays."""
    given = dtype_of(x)
    dtype = given if given.is_floating_point() else _SINGLE
    zero = constant(0, given) if given != ir.DataType.BOOL else None
    if zero is None:
        return op.Cast(op.And(x, op.Not(x)), to=_SINGLE)
    angle = op.Where(op.Less(x, zero), constant(math.pi, dtype), constant(0, dtype))
    return op.Where(op.IsNaN(x), x, angle) if given.is_floating_point() else angle


def translate_complex_angle(x: ir.Value) -> ir.Value:
    real, imaginary = split(x)
    return translate_atan2(imaginary, real)


def _in_quadrants(y: ir.Value, x: ir.Value, angle: ir.Value, dtype: ir.DataType) -> ir.Value:
    mirrored = op.Where(translate_signbit(x), op.Sub(constant(math.pi, dtype), angle), angle)
    return with_sign(mirrored, y, dtype)


def _first_quadrant(y: ir.Value, x: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Of magnitudes: 0 at (0, 0), a quarter of pi where both are infinite; NaN where one is NaN."""
    both_equal = op.Equal(y, x)  # equal zeros and equal infinities have no quotient
    is_zero = op.Equal(y, constant(0, dtype))
    angle = op.Where(both_equal, constant(math.pi / 4, dtype), op.Atan(op.Div(y, x)))
    return op.Where(op.And(is_zero, op.Not(op.IsNaN(x))), constant(0, dtype), angle)


def _first_quadrant_in_doubles(y: ir.Value, x: ir.Value) -> ir.Value:
    """onnxruntime has no Atan of doubles: that of singles, and one step of Newton's method, which doubles its digits."""
    larger = op.Max(x, y)
    infinity = constant(math.inf, _DOUBLE)
    is_infinite = op.Equal(larger, infinity)
    is_ordinary = op.Greater(larger, constant(0, _DOUBLE))
    y, x = (
        op.Where(is_infinite, op.Cast(op.Equal(side, infinity), to=_DOUBLE), op.Div(side, larger)) for side in (y, x)
    )
    y, x = (op.Where(is_ordinary, side, constant(0, _DOUBLE)) for side in (y, x))
    narrow = _first_quadrant(op.Cast(y, to=_SINGLE), op.Cast(x, to=_SINGLE), _SINGLE)
    angle = op.Cast(narrow, to=_DOUBLE)
    sine, cosine = op.Sin(angle), op.Cos(angle)
    step = op.Div(
        op.Sub(op.Mul(y, cosine), op.Mul(x, sine)),
        op.Add(op.Mul(x, cosine), op.Mul(y, sine)),
    )
    # Both are 0, or one is NaN.
    return op.Where(is_ordinary, op.Add(angle, step), larger)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "atan2": translate_atan2,
    "angle": translate_angle,
}

COMPLEX_TRANSLATIONS: dict[str, Callable[..., Any]] = {"angle": translate_complex_angle}
