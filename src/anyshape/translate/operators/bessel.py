"""Bessel functions, and the Chebyshev series by which they and other smooth functions are computed.

A series is fitted to torch's own function in float64 when it is translated. It is right to 1e-12 where the function is
analytic on its interval; the caller takes poles, logarithms and waves out first. Values are float64 throughout.

Near 0 a series in x, beside the logarithm that k and y have; far out a series in 1 / x, beside the exponential or the wave:

    j = sqrt(2 / (pi x)) (P cos t - Q sin t),  y = sqrt(2 / (pi x)) (P sin t + Q cos t),  t = x - (order / 2 + 1 / 4) pi

Beyond 8, P and Q are series in 8 / x, found from torch's j and y; up to 8, series in x beside the logarithm that y has.
torch.onnx (to 2.13) takes all of these apart into `prims` that it cannot write.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import constant, dtype_of

DOUBLE = ir.DataType.DOUBLE
Function = Callable[[torch.Tensor], torch.Tensor]
_TERMS = 40
_FAR, _FAR_K = 8.0, 2.0


@lru_cache(maxsize=64)
def _coefficients(function: Function, low: float, high: float) -> tuple[float, ...]:
    def values(places: np.ndarray) -> np.ndarray:
        return function(torch.from_numpy(places)).numpy()

    fitted = np.polynomial.chebyshev.Chebyshev.interpolate(values, _TERMS, domain=[low, high]).coef
    small = np.abs(fitted).max() * 1e-17
    kept = max((number for number, each in enumerate(fitted) if abs(each) > small), default=0)
    return tuple(float(each) for each in fitted[: kept + 1])


def fit(function: Function, low: float, high: float, x: ir.Value) -> ir.Value:
    """function(x), for x in [low, high]; nonsense elsewhere, for the caller to put aside. By Clenshaw's sums."""
    place = op.Div(op.Sub(x, number((low + high) / 2)), number((high - low) / 2))
    twice = op.Add(place, place)
    one_later, two_later = number(0), number(0)
    first, *rest = _coefficients(function, low, high)
    for coefficient in reversed(rest):
        one_later, two_later = (op.Sub(op.Add(op.Mul(twice, one_later), number(coefficient)), two_later), one_later)
    return op.Sub(op.Add(op.Mul(place, one_later), number(first)), two_later)


def number(value: float) -> ir.Value:
    return constant(value, DOUBLE)


_special = torch.special


def on_doubles(way: Callable[[ir.Value], ir.Value]) -> Callable[..., Any]:
    """A translation that works in float64 and returns the dtype of its input."""

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


def _i1e_near(x: torch.Tensor) -> torch.Tensor:
    return _special.i1e(x) / x


def _decay(function: Function, far: float) -> Function:
    """The function of far / u, without its decay by 1 / sqrt(x)."""
    return lambda u: (far / u).sqrt() * function(far / u)


_I0E_FAR, _I1E_FAR = _decay(_special.i0e, _FAR), _decay(_special.i1e, _FAR)


def i0e(x: ir.Value) -> ir.Value:
    is_near, inside, outside = _near_far(x, _FAR, _special.i0e, _I0E_FAR)
    return op.Where(is_near, inside, op.Div(outside, op.Sqrt(op.Abs(x))))


def i1e(x: ir.Value) -> ir.Value:
    is_near, inside, outside = _near_far(x, _FAR, _i1e_near, _I1E_FAR)
    return op.Where(is_near, op.Mul(x, inside), op.Mul(op.Sign(x), op.Div(outside, op.Sqrt(op.Abs(x)))))


def i0(x: ir.Value) -> ir.Value:
    return op.Mul(op.Exp(op.Abs(x)), i0e(x))


def i1(x: ir.Value) -> ir.Value:
    return op.Mul(op.Exp(op.Abs(x)), i1e(x))


def _k0_near(x: torch.Tensor) -> torch.Tensor:
    return _special.modified_bessel_k0(x) + torch.log(x / 2) * _special.i0(x)


def _k1_near(x: torch.Tensor) -> torch.Tensor:
    return x * (_special.modified_bessel_k1(x) - torch.log(x / 2) * _special.i1(x))


_K_NEAR = (_k0_near, _k1_near)
_K_FAR = tuple(
    _decay(each, _FAR_K) for each in (_special.scaled_modified_bessel_k0, _special.scaled_modified_bessel_k1)
)


def _k(x: ir.Value, order: int, *, is_scaled: bool) -> ir.Value:
    is_near, inside, outside = _near_far(x, _FAR_K, _K_NEAR[order], _K_FAR[order])
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


def spherical_j0(x: ir.Value) -> ir.Value:
    """sin(x) / x."""
    square = op.Mul(x, x)
    near = op.Sub(number(1), op.Mul(op.Div(square, number(6)), op.Sub(number(1), op.Div(square, number(20)))))
    is_near = op.Less(op.Abs(x), number(1e-3))
    far = op.Div(op.Sin(x), op.Where(is_near, number(1), x))
    value = op.Where(is_near, near, far)
    return op.Where(op.Equal(op.Abs(x), number(math.inf)), number(0), value)


_J = (_special.bessel_j0, _special.bessel_j1)
_Y = (_special.bessel_y0, _special.bessel_y1)


def _phase(order: int) -> float:
    return (order / 2 + 1 / 4) * math.pi


def _amplitude(order: int, part: int, u: torch.Tensor) -> torch.Tensor:
    """P (part 0) or Q (part 1)."""
    x = _FAR / u
    angle = x - _phase(order)
    j, y = _J[order](x), _Y[order](x)
    one, other = ((j, y), (y, -j))[part]
    return (math.pi * x / 2).sqrt() * (one * angle.cos() + other * angle.sin())


_AMPLITUDES = tuple(tuple(partial(_amplitude, order, part) for part in (0, 1)) for order in (0, 1))


def _y0_near(x: torch.Tensor) -> torch.Tensor:
    return _special.bessel_y0(x) - 2 / math.pi * x.log() * _special.bessel_j0(x)


def _y1_near(x: torch.Tensor) -> torch.Tensor:
    return _special.bessel_y1(x) - 2 / math.pi * (x.log() * _special.bessel_j1(x) - 1 / x)


def _far(size: ir.Value, order: int, *, is_j: bool) -> ir.Value:
    u = op.Div(number(_FAR), op.Max(size, number(_FAR)))
    p, q = (fit(amplitude, 0.0, 1.0, u) for amplitude in _AMPLITUDES[order])
    angle = op.Sub(size, number(_phase(order)))
    cosine, sine = op.Cos(angle), op.Sin(angle)
    wave = op.Sub(op.Mul(p, cosine), op.Mul(q, sine)) if is_j else op.Add(op.Mul(p, sine), op.Mul(q, cosine))
    return op.Mul(wave, op.Sqrt(op.Div(number(2 / math.pi), op.Max(size, number(_FAR)))))


def _j1_near(x: torch.Tensor) -> torch.Tensor:
    return _special.bessel_j1(x) / x


def _j(x: ir.Value, order: int) -> ir.Value:
    size = op.Abs(x)
    inside = op.Min(size, number(_FAR))
    near = op.Mul(inside, fit(_j1_near, 0.0, _FAR, inside)) if order else fit(_J[0], 0.0, _FAR, inside)
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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "i0": on_doubles(i0),
    "special_i0e": on_doubles(i0e),
    "special_i1": on_doubles(i1),
    "special_i1e": on_doubles(i1e),
    "special_modified_bessel_i0": on_doubles(i0),
    "special_modified_bessel_i1": on_doubles(i1),
    "special_modified_bessel_k0": on_doubles(partial(_k, order=0, is_scaled=False)),
    "special_modified_bessel_k1": on_doubles(partial(_k, order=1, is_scaled=False)),
    "special_scaled_modified_bessel_k0": on_doubles(partial(_k, order=0, is_scaled=True)),
    "special_scaled_modified_bessel_k1": on_doubles(partial(_k, order=1, is_scaled=True)),
    "special_spherical_bessel_j0": on_doubles(spherical_j0),
    "special_bessel_j0": on_doubles(partial(_j, order=0)),
    "special_bessel_j1": on_doubles(partial(_j, order=1)),
    "special_bessel_y0": on_doubles(partial(_y, order=0)),
    "special_bessel_y1": on_doubles(partial(_y, order=1)),
}
