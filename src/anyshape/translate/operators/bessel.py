"""Bessel functions: aten::i0, special_i0e, i1, i1e, bessel_j0, j1, y0, y1, (scaled_)modified_bessel_*, spherical_bessel_j0.

Near 0 a series in x, beside the logarithm that k and y have; far out a series in 1 / x, beside the exponential or the wave.
torch.onnx (to 2.13) takes them apart into `prims` that it cannot write.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.chebyshev_fits import DOUBLE, Function, fit, number
from anyshape.translate.operators.size_values import dtype_of

_FAR, _FAR_K = 8.0, 2.0
_special = torch.special


def on_doubles(way: Callable[[ir.Value], ir.Value]) -> Callable[..., Any]:
    """A translation that works in float64 and answers in the dtype it was asked in."""

    def translate(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        wanted = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
        return op.Cast(way(op.Cast(x, to=DOUBLE)), to=wanted)

    return translate


def _near_far(x: ir.Value, far: float, near: Function, beyond: Function) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Whether |x| is near, the series there, and the series in far / |x| beyond."""
    size = op.Abs(x)
    is_near = op.LessOrEqual(size, number(far))
    inside = fit(near, 0.0, far, op.Where(is_near, size, number(far)))
    outside = fit(beyond, 0.0, 1.0, op.Where(is_near, number(1), op.Div(number(far), size)))
    return is_near, inside, outside


def _i0e_far(u: torch.Tensor) -> torch.Tensor:
    return (_FAR / u).sqrt() * _special.i0e(_FAR / u)


def _i1e_near(x: torch.Tensor) -> torch.Tensor:
    return _special.i1e(x) / x


def _i1e_far(u: torch.Tensor) -> torch.Tensor:
    return (_FAR / u).sqrt() * _special.i1e(_FAR / u)


def i0e(x: ir.Value) -> ir.Value:
    is_near, inside, outside = _near_far(x, _FAR, _special.i0e, _i0e_far)
    return op.Where(is_near, inside, op.Div(outside, op.Sqrt(op.Abs(x))))


def i1e(x: ir.Value) -> ir.Value:
    is_near, inside, outside = _near_far(x, _FAR, _i1e_near, _i1e_far)
    return op.Where(is_near, op.Mul(x, inside), op.Mul(op.Sign(x), op.Div(outside, op.Sqrt(op.Abs(x)))))


def i0(x: ir.Value) -> ir.Value:
    return op.Mul(op.Exp(op.Abs(x)), i0e(x))


def i1(x: ir.Value) -> ir.Value:
    return op.Mul(op.Exp(op.Abs(x)), i1e(x))


def _k0_near(x: torch.Tensor) -> torch.Tensor:
    return _special.modified_bessel_k0(x) + torch.log(x / 2) * _special.i0(x)


def _k0_far(u: torch.Tensor) -> torch.Tensor:
    return (_FAR_K / u).sqrt() * _special.scaled_modified_bessel_k0(_FAR_K / u)


def _k1_near(x: torch.Tensor) -> torch.Tensor:
    return x * (_special.modified_bessel_k1(x) - torch.log(x / 2) * _special.i1(x))


def _k1_far(u: torch.Tensor) -> torch.Tensor:
    return (_FAR_K / u).sqrt() * _special.scaled_modified_bessel_k1(_FAR_K / u)


def _k(x: ir.Value, order: int, *, is_scaled: bool) -> ir.Value:
    near, beyond = ((_k0_near, _k0_far), (_k1_near, _k1_far))[order]
    is_near, inside, outside = _near_far(x, _FAR_K, near, beyond)
    log = op.Log(op.Div(x, number(2)))
    if order == 0:
        inside = op.Sub(inside, op.Mul(log, i0(x)))
    else:
        inside = op.Add(op.Mul(log, i1(x)), op.Div(inside, x))
    outside = op.Div(outside, op.Sqrt(x))
    if is_scaled:
        inside = op.Mul(inside, op.Exp(x))
    else:
        outside = op.Mul(outside, op.Exp(op.Neg(x)))
    return _positive_alone(x, op.Where(is_near, inside, outside), math.inf)


def _positive_alone(x: ir.Value, value: ir.Value, at_zero: float) -> ir.Value:
    """At 0 a pole, below it not a number."""
    zero = number(0)
    value = op.Where(op.Equal(x, zero), number(at_zero), value)
    return op.Where(op.Less(x, zero), number(math.nan), value)


def k0(x: ir.Value) -> ir.Value:
    return _k(x, 0, is_scaled=False)


def k1(x: ir.Value) -> ir.Value:
    return _k(x, 1, is_scaled=False)


def scaled_k0(x: ir.Value) -> ir.Value:
    return _k(x, 0, is_scaled=True)


def scaled_k1(x: ir.Value) -> ir.Value:
    return _k(x, 1, is_scaled=True)


def spherical_j0(x: ir.Value) -> ir.Value:
    """sin(x) / x."""
    square = op.Mul(x, x)
    near = op.Sub(number(1), op.Mul(op.Div(square, number(6)), op.Sub(number(1), op.Div(square, number(20)))))
    is_near = op.Less(op.Abs(x), number(1e-3))
    far = op.Div(op.Sin(x), op.Where(is_near, number(1), x))
    value = op.Where(is_near, near, far)
    return op.Where(op.Equal(op.Abs(x), number(math.inf)), number(0), value)
