"""Operators whose ONNX counterparts differ at NaN, infinities, signed zeros or large halves: angles, clamp, sign, pow
and others.

onnxscript's (torch 2.13) take `atan(y / x)` and correct it by comparisons with 0: at (0, -1) and at (-0.0, -1) the sign is
wrong. The angle of a real NaN is 0 there, and that of complex doubles has no kernel in onnxruntime.

Clip without a bound clips infinities in onnxruntime, Sign of NaN is NaN (0 in torch), and ReduceLogSumExp overflows in half
precision. torch.onnx (to 2.13) writes a heaviside that is 1 for NaN, a logit with `eps` that loses NaN, 0 for xlogy(0, NaN);
and Pow(-inf, 0.5) is inf, whereas torch takes the square root.

Also aten::mul, add, sub and pow by a number that is computed from sizes; aten::copy of something smaller; aten::scalar_tensor
and full in double precision, and full, zeros and ones of complex numbers: torch.onnx (to 2.13) takes every scalar for a
constant, copies what should be broadcast as it is, and makes a double of a number that went through single precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.complex_numbers import split
from anyshape.translate.operators.elementwise import translate_signbit, with_sign
from anyshape.translate.operators.integers import translate_power
from anyshape.translate.operators.size_values import NARROW, constant, dtype_of, ints

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

_SINGLE = ir.DataType.FLOAT
_HALF = 0.5
_DOUBLE = ir.DataType.DOUBLE
_COMPLEX = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: _DOUBLE}


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
    step = op.Div(op.Sub(op.Mul(y, cosine), op.Mul(x, sine)), op.Add(op.Mul(x, cosine), op.Mul(y, sine)))
    # Both are 0, or one is NaN.
    return op.Where(is_ordinary, op.Add(angle, step), larger)


COMPLEX_TRANSLATIONS: dict[str, Callable[..., Any]] = {"angle": translate_complex_angle}


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


def translate_clamp(x: ir.Value, low: Any = None, high: Any = None) -> ir.Value:
    """max(x, low), min(x, high), or both."""
    low = None if low is None else op.CastLike(low, x)
    high = None if high is None else op.CastLike(high, x)
    if low is None and high is None:
        return op.Identity(x)
    if (low is not None and high is not None) or not dtype_of(x).is_floating_point():
        return op.Clip(x, low, high)
    return op.Max(x, low) if high is None else op.Min(x, high)


def translate_clamp_max(x: ir.Value, high: Any) -> ir.Value:
    return translate_clamp(x, None, high)


def clamp_by_tensor(name: str) -> Callable[..., Any]:
    """clamp_min with "Max", clamp_max with "Min"; of integers as torch.onnx writes them: not every type has a Max."""

    def translate(x: ir.Value, bound: ir.Value) -> ir.Value:
        if dtype_of(x).is_floating_point():
            return getattr(op, name)(x, op.CastLike(bound, x))
        from onnxscript.function_libs.torch_lib.ops import core

        return (core.aten_clamp_min_tensor if name == "Max" else core.aten_clamp_max_tensor)(x, bound)

    return translate


def translate_sign(x: ir.Value) -> ir.Value:
    """0 for NaN."""
    if not dtype_of(x).is_floating_point():
        return op.Sign(x)
    return op.Where(op.IsNaN(x), constant(0, dtype_of(x)), op.Sign(x))


def translate_logsumexp(x: ir.Value, dim: Sequence[int] | int, keepdim: bool = False) -> ir.Value:
    """log(sum(exp(x - m))) + m, where m is the largest element if that is finite."""
    dtype = dtype_of(x)
    axes = ints(*([dim] if isinstance(dim, int) else dim))
    largest = op.ReduceMax(x, axes, keepdims=1)
    is_infinite = op.Equal(op.Abs(largest), constant(float("inf"), dtype))
    largest = op.Where(is_infinite, constant(0, dtype), largest)
    kept = op.Add(op.Log(op.ReduceSum(op.Exp(op.Sub(x, largest)), axes, keepdims=1)), largest)
    return kept if keepdim else op.Squeeze(kept, axes)


def translate_heaviside(x: ir.Value, values: ir.Value) -> ir.Value:
    """0 for NaN."""
    zero = constant(0, dtype_of(x))
    return op.Where(op.Equal(x, zero), values, op.Cast(op.Greater(x, zero), to=dtype_of(x)))


def translate_logit(x: ir.Value, eps: float | None = None) -> ir.Value:
    """Below `eps` it is eps, else above 1 - eps it is 1 - eps: in this order, also where eps is the larger of both."""
    one = constant(1, dtype_of(x))
    inside = x
    if eps is not None:
        low, high = constant(eps, dtype_of(x)), constant(1 - eps, dtype_of(x))
        inside = op.Where(op.Less(x, low), low, op.Where(op.Greater(x, high), high, x))
    return op.Log(op.Div(inside, op.Sub(one, inside)))


def translate_xlogy(x: ir.Value, other: ir.Value) -> ir.Value:
    """x * log(other): 0 where x is 0 and the other a number."""
    zero = constant(0, dtype_of(x))
    is_zero = op.And(op.Equal(x, zero), op.Not(op.IsNaN(other)))
    return op.Where(is_zero, zero, op.Mul(x, op.Log(other)))


def by_scalar(name: str) -> Callable[..., Any]:
    """`Mul`, `Add` or `Sub`, in the tensor's own dtype: where another is wanted, torch has converted the tensor before."""

    def translate(x: ir.Value, other: ir.Value | float, alpha: ir.Value | float = 1) -> ir.Value:
        if not isinstance(other, ir.Value) and not isinstance(alpha, ir.Value):
            from onnxscript.function_libs.torch_lib.ops import core

            theirs = getattr(core, f"aten_{name.lower()}_scalar")
            return theirs(x, other) if name == "Mul" else theirs(x, other, alpha=alpha)
        number = _as_dtype(other, x)
        if isinstance(alpha, ir.Value) or alpha != 1:
            number = op.Mul(number, _as_dtype(alpha, x))
        return getattr(op, name)(x, number)

    return translate


def translate_pow(x: ir.Value, exponent: ir.Value | float) -> ir.Value:
    if not isinstance(exponent, ir.Value):
        from onnxscript.function_libs.torch_lib.ops import core

        # torch takes the square root, NaN for -inf; of float16 the power, inf for -inf.
        takes_root = dtype_of(x).is_floating_point() and dtype_of(x) != ir.DataType.FLOAT16
        if exponent == _HALF and takes_root:
            return op.Sqrt(x)
        if exponent == -_HALF and takes_root:
            return op.Reciprocal(op.Sqrt(x))
        return core.aten_pow_tensor_scalar(x, exponent)
    if dtype_of(x).is_integer() and dtype_of(exponent).is_integer():
        return op.Cast(translate_power(x, exponent), to=dtype_of(x))
    return op.Pow(x, _as_dtype(exponent, x))


def _as_dtype(number: ir.Value | float, x: ir.Value) -> ir.Value:
    return op.Cast(number, to=dtype_of(x)) if isinstance(number, ir.Value) else constant(number, dtype_of(x))


def translate_scalar_tensor(number: ir.Value | float, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    wanted = ir.DataType.FLOAT if dtype in (None, -1) else dtype
    return core.aten_scalar_tensor(_exact(number, wanted), dtype=wanted)


def translate_full(size: Any, number: ir.Value | complex, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    shape = size if isinstance(size, ir.Value) else ints(*size)
    if dtype in (None, -1) and isinstance(number, complex):
        dtype = ir.DataType.COMPLEX64
    if dtype in _COMPLEX and not isinstance(number, ir.Value):
        pair = constant([complex(number).real, complex(number).imag], _COMPLEX[ir.DataType(dtype)])
        return op.Expand(pair, op.Concat(shape, ints(2), axis=0))
    wanted = -1 if dtype is None else dtype
    return core.aten_full(shape, _exact(number, wanted), dtype=wanted)


def filled(number: int) -> Callable[..., Any]:
    """`zeros` or `ones`."""

    def translate(size: Any, *, dtype: int | None = None, **unused: Any) -> ir.Value:
        return translate_full(size, number, dtype=ir.DataType.FLOAT if dtype in (None, -1) else dtype)

    return translate


def _exact(number: ir.Value | complex, dtype: int | None) -> ir.Value | complex:
    return constant(number, ir.DataType.DOUBLE) if isinstance(number, float) and dtype == _DOUBLE else number


def translate_copy(x: ir.Value, src: ir.Value, non_blocking: bool = False) -> ir.Value:
    same_dtype = src if src.dtype == dtype_of(x) else op.Cast(src, to=dtype_of(x))
    if x.shape is not None and src.shape is not None and x.shape == src.shape:
        return op.Identity(same_dtype)
    return op.Expand(same_dtype, op.Shape(x))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "atan2": translate_atan2,
    "angle": translate_angle,
    "clamp": translate_clamp,
    "clamp_min": translate_clamp,
    "clamp_max": translate_clamp_max,
    "clamp_min.Tensor": clamp_by_tensor("Max"),
    "clamp_max.Tensor": clamp_by_tensor("Min"),
    "sign": translate_sign,
    "logsumexp": translate_logsumexp,
    "heaviside": translate_heaviside,
    "logit": translate_logit,
    "xlogy.Tensor": translate_xlogy,
    "scalar_tensor": translate_scalar_tensor,
    "full": translate_full,
    "zeros": filled(0),
    "ones": filled(1),
    "copy": translate_copy,
    "mul.Scalar": by_scalar("Mul"),
    "add.Scalar": by_scalar("Add"),
    "sub.Scalar": by_scalar("Sub"),
    "pow.Tensor_Scalar": translate_pow,
}
