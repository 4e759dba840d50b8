"""Special functions of mathematics: orthogonal polynomials, zeta, and those of the normal distribution.

Orthogonal polynomials of an order that is a tensor too: aten::special_{shifted_,}chebyshev_polynomial_{t,u,v,w},
hermite_polynomial_{h,he}, laguerre_polynomial_l and legendre_polynomial_p.

All follow p[k + 1] = (a x + b) p[k] - c p[k - 1]; one round of an ONNX `Loop` an order, and each element keeps the one it asks
for. torch.onnx (to 2.13) has none of these.

aten::special_zeta (Hurwitz), polygamma, erfc, special_erfcx, special_log_ndtr and special_ndtri, in float64.

zeta(x, q) is the sum of (q + k)^-x: terms until q + k is above 10, then Euler and Maclaurin's series for the rest.
torch.onnx (to 2.13) has none of these but erfc, which it writes as 1 - erf(x): 0 from 4 on.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.bessel import DOUBLE, fit, number
from anyshape.translate.operators.elementwise import log1p_in, translate_digamma, translate_erfinv
from anyshape.translate.operators.size_values import Values, as_scalar, constant, dtype_of, repeat

Step = Callable[[Any, ir.Value, ir.Value, ir.Value], ir.Value]
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
_HIGH = 10
_PI = (3.14159250259399414, 1.50995788317231927e-7, 1.07806057163162381e-14)
"""Three parts, of which the first two have 24 bits: their products with whole numbers below 2^29 are exact."""
_LONGEST_TAIL = 38.0  # exp(-38**2 / 2) is the least double
_TAIL = 0.1


@dataclass(frozen=True)
class Family:
    """p[0] = 1, p[1] = slope x + offset, and the next from (k, x, p[k], p[k - 1]); `is_shifted`: x is 2 x - 1."""

    slope: float
    offset: float
    step: Step
    is_shifted: bool = False


def _chebyshev(k: ir.Value, x: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return op.Sub(op.Mul(op.Add(x, x), now), before)


def _hermite(k: ir.Value, x: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return op.Sub(op.Mul(op.Add(x, x), now), op.Mul(op.Add(k, k), before))


def _hermite_e(k: ir.Value, x: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return op.Sub(op.Mul(x, now), op.Mul(k, before))


def _laguerre(k: ir.Value, x: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    one = op.CastLike(as_scalar(1), k)
    odd = op.Add(op.Add(k, k), one)
    return op.Div(op.Sub(op.Mul(op.Sub(odd, x), now), op.Mul(k, before)), op.Add(k, one))


def _legendre(k: ir.Value, x: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    one = op.CastLike(as_scalar(1), k)
    odd = op.Add(op.Add(k, k), one)
    return op.Div(op.Sub(op.Mul(op.Mul(odd, x), now), op.Mul(k, before)), op.Add(k, one))


CHEBYSHEV_T = Family(1, 0, _chebyshev)
CHEBYSHEV_U = Family(2, 0, _chebyshev)
CHEBYSHEV_V = Family(2, -1, _chebyshev)
CHEBYSHEV_W = Family(2, 1, _chebyshev)
SHIFTED_T = Family(1, 0, _chebyshev, is_shifted=True)
SHIFTED_U = Family(2, 0, _chebyshev, is_shifted=True)
SHIFTED_V = Family(2, -1, _chebyshev, is_shifted=True)
SHIFTED_W = Family(2, 1, _chebyshev, is_shifted=True)
HERMITE_H = Family(2, 0, _hermite)
HERMITE_HE = Family(1, 0, _hermite_e)
LAGUERRE = Family(-1, 1, _laguerre)
LEGENDRE = Family(1, 0, _legendre)


def polynomial(family: Family) -> Callable[..., Any]:
    """0 where the order is negative; an order that is no whole number is rounded towards zero."""

    def translate(x: ir.Value | float, n: ir.Value | float) -> ir.Value:
        dtype = next(dtype_of(value) for value in (x, n) if isinstance(value, ir.Value))
        dtype = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
        place = op.Cast(x, to=dtype) if isinstance(x, ir.Value) else constant(x, dtype)
        order = n if isinstance(n, ir.Value) else constant(float(n), dtype)
        return _evaluate(family, place, op.Cast(order, to=ir.DataType.INT64), dtype)

    return translate


def _evaluate(family: Family, x: ir.Value, n: ir.Value, dtype: ir.DataType) -> ir.Value:
    zero, one = constant(0, dtype), constant(1, dtype)
    if family.is_shifted:
        x = op.Sub(op.Add(x, x), one)
    shape = op.Shape(op.Add(x, op.Cast(n, to=dtype)))
    x = op.Expand(x, shape)
    first = op.Add(op.Mul(x, constant(family.slope, dtype)), constant(family.offset, dtype))
    is_constant = op.Equal(n, as_scalar(0))
    chosen = op.Where(is_constant, one, op.Where(op.Equal(n, as_scalar(1)), first, op.Expand(zero, shape)))

    def step(round_: ir.Value, now: ir.Value, before: ir.Value, kept: ir.Value) -> Values:
        k = op.Add(round_, as_scalar(1))
        after = family.step(op.Cast(k, to=dtype), x, now, before)
        return [after, now, op.Where(op.Equal(n, op.Add(k, as_scalar(1))), after, kept)]

    rounds = op.Max(op.Sub(op.ReduceMax(n, keepdims=0), as_scalar(1)), as_scalar(0))
    states = [(first, dtype), (op.Expand(one, shape), dtype), (chosen, dtype)]
    return repeat(rounds, states, step)[2]


def translate_zeta(x: ir.Value | float, q: ir.Value | float) -> ir.Value:
    dtype = next(dtype_of(value) for value in (x, q) if isinstance(value, ir.Value))
    wanted = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
    return op.Cast(_zeta(_wide(x), _wide(q)), to=wanted)


def _wide(value: ir.Value | float) -> ir.Value:
    return op.Cast(value, to=DOUBLE) if isinstance(value, ir.Value) else number(value)


def _zeta(x: ir.Value, q: ir.Value) -> ir.Value:
    return _outside(x, q, _series(x, q))


def _series(x: ir.Value, q: ir.Value) -> ir.Value:
    """The sum, where x > 1 and q is finite and no pole. Elements with another q do not change the number of terms."""
    zero, one = number(0), number(1)
    power = op.Neg(x)
    is_below = op.And(op.Less(q, zero), op.Not(op.Equal(q, op.Floor(q))))
    lowest = op.Min(op.ReduceMin(op.Where(is_below, q, zero), keepdims=0), zero)
    terms = op.Cast(op.Sub(number(_HIGH), op.Floor(lowest)), to=ir.DataType.INT64)

    def add(k: ir.Value, total: ir.Value) -> Values:
        return [op.Add(total, op.Pow(op.Add(q, op.Cast(k, to=DOUBLE)), power))]

    start = op.Mul(zero, op.Add(op.Where(op.IsNaN(x), zero, x), op.Where(op.IsNaN(q), zero, q)))
    start = op.Where(op.IsNaN(start), zero, start)  # an infinity
    (total,) = repeat(terms, [(start, DOUBLE)], add)
    far = op.Add(q, op.Cast(terms, to=DOUBLE))
    total = op.Add(total, op.Div(op.Pow(far, op.Sub(one, x)), op.Sub(x, one)))
    term = op.Pow(far, power)
    total = op.Add(total, op.Mul(number(0.5), term))
    rising = x
    for order, factor in enumerate(_BERNOULLI):
        term = op.Div(term, far)
        total = op.Add(total, op.Mul(number(factor), op.Mul(rising, term)))
        term = op.Div(term, far)
        for step in (2 * order + 1, 2 * order + 2):
            rising = op.Mul(rising, op.Add(x, number(step)))
    return total


def _outside(x: ir.Value, q: ir.Value, value: ir.Value) -> ir.Value:
    """The value, with torch's results where the series ends: NaN below x = 1, at q = inf and for roots of negative numbers;
    infinite at poles."""
    zero, one = number(0), number(1)
    is_low = op.LessOrEqual(q, zero)
    is_pole = op.And(is_low, op.Equal(q, op.Floor(q)))
    is_undefined = op.And(is_low, op.Not(op.Equal(x, op.Floor(x))))
    is_undefined = op.Or(is_undefined, op.Equal(q, number(math.inf)))
    value = op.Where(is_undefined, number(math.nan), value)
    value = op.Where(is_pole, number(math.inf), value)
    value = op.Where(op.Less(x, one), number(math.nan), value)
    return op.Where(op.Equal(x, one), number(math.inf), value)


def translate_polygamma(n: int, x: ir.Value) -> ir.Value:
    """(-1)^(n + 1) n! zeta(n + 1, x); at 1 by reflection, as torch has it."""
    if n == 0:
        return translate_digamma(x)
    wide = _wide(x)
    if n == 1:
        return op.Cast(_trigamma(x, wide), to=dtype_of(x))
    factor = number((-1.0) ** (n + 1) * math.factorial(n))
    return op.Cast(op.Mul(factor, _zeta(number(n + 1), wide)), to=dtype_of(x))


def _trigamma(x: ir.Value, wide: ir.Value) -> ir.Value:
    """Below 0.5 pi^2 / sin(pi x)^2 - trigamma(1 - x). At poles torch's sine is not 0, since it rounds pi x in x's dtype
    (in float32 for half floats): so does the file."""
    is_low = op.Less(wide, number(0.5))
    upper = _series(number(2), op.Where(is_low, op.Sub(number(1), wide), wide))
    precision = DOUBLE if dtype_of(x) == DOUBLE else ir.DataType.FLOAT
    angle = op.Mul(constant(math.pi, precision), op.Cast(x, to=precision))
    sine = _sine_or_its_negative(op.Cast(angle, to=DOUBLE))
    reflected = op.Sub(op.Div(number(math.pi**2), op.Mul(sine, sine)), upper)
    return op.Where(is_low, reflected, upper)


def _sine_or_its_negative(angle: ir.Value) -> ir.Value:
    """onnxruntime's Sin (to 1.31) is 0 at float64's nearest number to a multiple of pi: the multiple is subtracted first."""
    count = op.Round(op.Div(angle, number(math.pi)))
    for part in _PI:
        angle = op.Sub(angle, op.Mul(count, number(part)))
    return op.Sin(angle)


def _erfcx_by_share(t: torch.Tensor) -> torch.Tensor:
    return torch.special.erfcx(4 / t - 4)


def _erfcx(x: ir.Value) -> ir.Value:
    size = op.Abs(x)
    upper = fit(_erfcx_by_share, 0.0, 1.0, op.Div(number(4), op.Add(number(4), size)))
    # Far out, where the share is nearly 0, the first two terms of 1 / x.
    square = op.Mul(size, size)
    lead = op.Div(number(1 / math.sqrt(math.pi)), op.Max(size, number(1)))
    far = op.Mul(lead, op.Sub(number(1), op.Div(number(0.5), op.Max(square, number(1)))))
    upper = op.Where(op.Greater(size, number(1000)), far, upper)
    below = op.Sub(op.Mul(number(2), op.Exp(square)), upper)
    return op.Where(op.Less(x, number(0)), below, upper)


def translate_erfcx(x: ir.Value) -> ir.Value:
    return op.Cast(_erfcx(_wide(x)), to=dtype_of(x))


def translate_erfc(x: ir.Value) -> ir.Value:
    """erfcx(|x|) exp(-x^2), for negative numbers subtracted from 2."""
    wide = _wide(x)
    size = op.Abs(wide)
    upper = op.Mul(_erfcx(size), op.Exp(op.Neg(op.Mul(size, size))))
    value = op.Where(op.Less(wide, number(0)), op.Sub(number(2), upper), upper)
    return op.Cast(value, to=dtype_of(x) if dtype_of(x).is_floating_point() else ir.DataType.FLOAT)


def translate_log_ndtr(x: ir.Value) -> ir.Value:
    """log(erfcx(-t) / 2) - t^2 below -1, else log1p(-erfcx(t) exp(-t^2) / 2), with t = x / sqrt(2)."""
    t = op.Div(_wide(x), number(math.sqrt(2)))
    square = op.Mul(t, t)
    low = op.Sub(op.Log(op.Mul(number(0.5), _erfcx(op.Neg(t)))), square)
    high = log1p_in(op.Mul(number(-0.5), op.Mul(_erfcx(t), op.Exp(op.Neg(square)))), DOUBLE)
    value = op.Where(op.Less(_wide(x), number(-1)), low, high)
    value = op.Where(op.Greater(_wide(x), number(30)), number(0), value)
    return op.Cast(value, to=dtype_of(x))


def _tail(z: torch.Tensor) -> torch.Tensor:
    """What is left of the quantile at p = exp(-1 / (2 z**2)), by its first terms."""
    far = 1 / z
    return far - far.log() * z + torch.special.ndtri(torch.exp(-far * far / 2))


def translate_ndtri(x: ir.Value) -> ir.Value:
    """sqrt(2) erfinv(2 x - 1); in the tails by a series in 1 / sqrt(-2 log x), where 2 x - 1 has too few digits."""
    wide, one = _wide(x), number(1)
    middle = op.Sub(op.Mul(number(2), wide), one)
    middle.type, middle.shape = ir.TensorType(DOUBLE), x.shape
    inner = op.Mul(translate_erfinv(middle), constant(math.sqrt(2), DOUBLE))
    is_low = op.Less(wide, number(0.5))
    share = op.Where(is_low, wide, op.Sub(one, wide))
    is_tail = op.And(op.Less(share, number(_TAIL)), op.Greater(share, number(0)))
    far = op.Sqrt(op.Mul(number(-2), op.Log(op.Where(is_tail, share, number(_TAIL)))))
    z = op.Reciprocal(op.Min(far, number(_LONGEST_TAIL)))
    tail = op.Sub(op.Sub(far, op.Mul(op.Log(far), z)), fit(_tail, 1 / _LONGEST_TAIL, 0.5, z))
    signed = op.Where(is_low, op.Neg(tail), tail)
    return op.Cast(op.Where(is_tail, signed, inner), to=dtype_of(x))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "special_zeta": translate_zeta,
    "special_zeta.self_scalar": translate_zeta,
    "special_zeta.other_scalar": translate_zeta,
    "polygamma": translate_polygamma,
    "erfc": translate_erfc,
    "special_erfc": translate_erfc,
    "special_erfcx": translate_erfcx,
    "special_log_ndtr": translate_log_ndtr,
    "special_ndtri": translate_ndtri,
    "special_chebyshev_polynomial_t": polynomial(CHEBYSHEV_T),
    "special_chebyshev_polynomial_u": polynomial(CHEBYSHEV_U),
    "special_chebyshev_polynomial_v": polynomial(CHEBYSHEV_V),
    "special_chebyshev_polynomial_w": polynomial(CHEBYSHEV_W),
    "special_shifted_chebyshev_polynomial_t": polynomial(SHIFTED_T),
    "special_shifted_chebyshev_polynomial_u": polynomial(SHIFTED_U),
    "special_shifted_chebyshev_polynomial_v": polynomial(SHIFTED_V),
    "special_shifted_chebyshev_polynomial_w": polynomial(SHIFTED_W),
    "special_hermite_polynomial_h": polynomial(HERMITE_H),
    "special_hermite_polynomial_he": polynomial(HERMITE_HE),
    "special_laguerre_polynomial_l": polynomial(LAGUERRE),
    "special_legendre_polynomial_p": polynomial(LEGENDRE),
}
