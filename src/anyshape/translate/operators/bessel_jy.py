"""The Bessel functions that are waves: aten::special_bessel_j0, j1, y0 and y1.

    j = sqrt(2 / (pi x)) (P cos t - Q sin t),  y = sqrt(2 / (pi x)) (P sin t + Q cos t),  t = x - (order / 2 + 1 / 4) pi

Beyond 8, P and Q are series in 8 / x, found from torch's j and y; up to 8, series in x beside the logarithm that y has.
torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.chebyshev_fits import Function, fit, number

_FAR = 8.0
_special = torch.special
_J = (_special.bessel_j0, _special.bessel_j1)
_Y = (_special.bessel_y0, _special.bessel_y1)


def _phase(order: int) -> float:
    return (order / 2 + 1 / 4) * math.pi


def _amplitudes(order: int, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x = _FAR / u
    angle = x - _phase(order)
    j, y = _J[order](x), _Y[order](x)
    scale = (math.pi * x / 2).sqrt()
    return scale * (j * angle.cos() + y * angle.sin()), scale * (y * angle.cos() - j * angle.sin())


def _p0(u: torch.Tensor) -> torch.Tensor:
    return _amplitudes(0, u)[0]


def _q0(u: torch.Tensor) -> torch.Tensor:
    return _amplitudes(0, u)[1]


def _p1(u: torch.Tensor) -> torch.Tensor:
    return _amplitudes(1, u)[0]


def _q1(u: torch.Tensor) -> torch.Tensor:
    return _amplitudes(1, u)[1]


def _y0_near(x: torch.Tensor) -> torch.Tensor:
    return _special.bessel_y0(x) - 2 / math.pi * x.log() * _special.bessel_j0(x)


def _y1_near(x: torch.Tensor) -> torch.Tensor:
    return _special.bessel_y1(x) - 2 / math.pi * (x.log() * _special.bessel_j1(x) - 1 / x)


def _far(size: ir.Value, order: int, *, is_j: bool) -> ir.Value:
    u = op.Div(number(_FAR), op.Max(size, number(_FAR)))
    shapes: tuple[Function, Function] = ((_p0, _q0), (_p1, _q1))[order]
    p, q = (fit(shape, 0.0, 1.0, u) for shape in shapes)
    angle = op.Sub(size, number(_phase(order)))
    cosine, sine = op.Cos(angle), op.Sin(angle)
    wave = op.Sub(op.Mul(p, cosine), op.Mul(q, sine)) if is_j else op.Add(op.Mul(p, sine), op.Mul(q, cosine))
    return op.Mul(wave, op.Sqrt(op.Div(number(2 / math.pi), op.Max(size, number(_FAR)))))


def _j(x: ir.Value, order: int) -> ir.Value:
    size = op.Abs(x)
    near = fit(_J[order], 0.0, _FAR, op.Min(size, number(_FAR)))
    value = op.Where(op.LessOrEqual(size, number(_FAR)), near, _far(size, order, is_j=True))
    return op.Mul(value, op.Sign(x)) if order else value


def _y(x: ir.Value, order: int) -> ir.Value:
    inside = op.Min(x, number(_FAR))
    wave = op.Mul(op.Log(inside), _j(inside, order))
    wave = op.Sub(wave, op.Reciprocal(inside)) if order else wave
    smooth = fit((_y0_near, _y1_near)[order], 0.0, _FAR, inside)
    near = op.Add(smooth, op.Mul(number(2 / math.pi), wave))
    value = op.Where(op.LessOrEqual(x, number(_FAR)), near, _far(x, order, is_j=False))
    value = op.Where(op.Equal(x, number(0)), number(-math.inf), value)
    return op.Where(op.Less(x, number(0)), number(math.nan), value)


def j0(x: ir.Value) -> ir.Value:
    return _j(x, 0)


def j1(x: ir.Value) -> ir.Value:
    return _j(x, 1)


def y0(x: ir.Value) -> ir.Value:
    return _y(x, 0)


def y1(x: ir.Value) -> ir.Value:
    return _y(x, 1)
