"""Functions of each element by itself that ONNX lacks, or that onnxruntime computes less exactly or slowly; activations, too.

aten::fmax, fmin, signbit, copysign, hypot, lgamma, digamma and erfinv: torch.onnx (to 2.13) takes them apart into `prims`
that it cannot write. lgamma and digamma run in float64 by series that are right to 1e-13 there; erfinv is right to 1e-6,
which is what float32 needs.

aten::logaddexp, logaddexp2, log_sigmoid, log2 and log10: torch.onnx (to 2.13) writes log(exp(x) + exp(y)), which is inf from
89 on, and log(sigmoid(x)), which is -inf from -104 on; it divides a logarithm in float64 by log(2) in float32.

aten::log1p and expm1: torch.onnx (to 2.13) writes log(1 + x) and exp(x) - 1, which are 0 from 3e-8 down. So are onnxruntime's
Elu, Celu and Selu below 0 (seen to 1.31).

aten::gelu and rsqrt, in the forms that onnxruntime fuses: torch.onnx (to 2.13) writes x * (0.5 * (1 + erf(x / sqrt 2))) and
Reciprocal(Sqrt(x)), which stay five nodes, and keep a root mean square norm from becoming one.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import NARROW, constant, dtype_of

_DOUBLE = ir.DataType.DOUBLE
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
_DIGAMMA_SHIFT = 10
_ERFINV_MIDDLE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def ignoring_nan(name: str) -> Callable[..., Any]:
    """fmax with "Max", fmin with "Min": the number, where the other is none."""

    def translate(left: ir.Value, right: ir.Value) -> ir.Value:
        both = getattr(op, name)(left, right)
        if not dtype_of(left).is_floating_point():
            return both
        return op.Where(op.IsNaN(left), right, op.Where(op.IsNaN(right), left, both))

    return translate


def translate_signbit(x: ir.Value) -> ir.Value:
    dtype = dtype_of(x)
    if dtype == ir.DataType.BOOL:
        return op.And(x, op.Not(x))
    zero = constant(0, dtype)
    is_negative = op.Less(x, zero)
    if not dtype.is_floating_point():
        return is_negative
    # -0.0 is not less than 0, but its reciprocal is.
    return op.Or(is_negative, op.And(op.Equal(x, zero), op.Less(op.Reciprocal(x), zero)))


def translate_copysign(x: ir.Value, other: ir.Value) -> ir.Value:
    return with_sign(op.Abs(x), other, dtype_of(x))


def with_sign(magnitude: ir.Value, other: ir.Value, dtype: ir.DataType) -> ir.Value:
    """By a product: onnxruntime's Where (to 1.27) makes -0.0 to 0.0."""
    return op.Mul(magnitude, op.Where(translate_signbit(other), constant(-1, dtype), constant(1, dtype)))


def translate_hypot(x: ir.Value, other: ir.Value) -> ir.Value:
    """Scaled by the larger, so that no square overflows."""
    dtype = dtype_of(x)
    larger, smaller = op.Max(op.Abs(x), op.Abs(other)), op.Min(op.Abs(x), op.Abs(other))
    zero = constant(0, dtype)
    ratio = op.Where(op.Equal(larger, zero), zero, op.Div(smaller, larger))
    length = op.Mul(larger, op.Sqrt(op.Add(constant(1, dtype), op.Mul(ratio, ratio))))
    # An infinity wins, also over NaN.
    is_infinite = op.Or(*(op.Equal(op.Abs(side), constant(math.inf, dtype)) for side in (x, other)))
    return op.Where(is_infinite, constant(math.inf, dtype), length)


def translate_lgamma(x: ir.Value) -> ir.Value:
    """Lanczos' series; below 1/2 by reflection. Poles are +inf."""
    half, one = constant(0.5, _DOUBLE), constant(1, _DOUBLE)
    wide = op.Cast(x, to=_DOUBLE)
    is_low = op.Less(wide, half)
    shifted = op.Sub(op.Where(is_low, op.Sub(one, wide), wide), one)
    series = constant(_LANCZOS[0], _DOUBLE)
    for number, factor in enumerate(_LANCZOS[1:], 1):
        series = op.Add(series, op.Div(constant(factor, _DOUBLE), op.Add(shifted, constant(number, _DOUBLE))))
    base = op.Add(shifted, constant(7.5, _DOUBLE))
    root = constant(math.log(math.sqrt(2 * math.pi)), _DOUBLE)
    power = op.Sub(op.Mul(op.Add(shifted, half), op.Log(base)), base)
    upper = op.Add(op.Add(root, power), op.Log(series))
    upper = op.Where(_is_infinite(wide), constant(math.inf, _DOUBLE), upper)
    # The nearest whole number is taken away: of a number just below 0, x - floor(x) is 1.
    turn = op.Abs(op.Sin(op.Mul(constant(math.pi, _DOUBLE), op.Sub(wide, op.Round(wide)))))
    reflected = op.Sub(op.Log(op.Div(constant(math.pi, _DOUBLE), turn)), upper)
    return op.Cast(op.Where(op.And(is_low, op.Not(_is_infinite(wide))), reflected, upper), to=dtype_of(x))


def translate_digamma(x: ir.Value) -> ir.Value:
    """Far enough up, the asymptotic series; down again by recurrence; below 0 by reflection. NaN at negative poles."""
    one = constant(1, _DOUBLE)
    wide = op.Cast(x, to=_DOUBLE)
    is_low = op.Less(wide, constant(0, _DOUBLE))
    place = op.Where(is_low, op.Sub(one, wide), wide)
    total = constant(0, _DOUBLE)
    for number in range(_DIGAMMA_SHIFT):
        total = op.Sub(total, op.Reciprocal(op.Add(place, constant(number, _DOUBLE))))
    far = op.Add(place, constant(_DIGAMMA_SHIFT, _DOUBLE))
    square = op.Reciprocal(op.Mul(far, far))
    series = _polynomial(square, [*reversed(_DIGAMMA), 0.0])
    upper = op.Add(total, op.Add(op.Sub(op.Log(far), op.Div(constant(0.5, _DOUBLE), far)), series))
    # Of a number just below 0, x - floor(x) is 1: the fraction is taken towards 0.
    part = op.Mul(constant(math.pi, _DOUBLE), op.Add(wide, op.Floor(op.Neg(wide))))
    tangent = op.Div(op.Sin(part), op.Cos(part))
    is_pole = op.And(is_low, op.Equal(wide, op.Floor(wide)))
    reflected = op.Sub(upper, op.Div(constant(math.pi, _DOUBLE), tangent))
    result = op.Where(is_low, reflected, upper)
    result = op.Where(is_pole, constant(math.nan, _DOUBLE), result)
    # 1 / 0 has the sign of its zero; digamma the other.
    at_zero = op.Neg(op.Reciprocal(wide))
    return op.Cast(op.Where(op.Equal(wide, constant(0, _DOUBLE)), at_zero, result), to=dtype_of(x))


def translate_erfinv(x: ir.Value) -> ir.Value:
    """Giles' two polynomials in log(1 - x^2): one for the middle, one for the tails."""
    one = constant(1, _DOUBLE)
    wide = op.Cast(x, to=_DOUBLE)
    depth = op.Neg(op.Log(op.Mul(op.Sub(one, wide), op.Add(one, wide))))
    middle = _polynomial(op.Sub(depth, constant(2.5, _DOUBLE)), _ERFINV_MIDDLE)
    tail = _polynomial(op.Sub(op.Sqrt(depth), constant(3, _DOUBLE)), _ERFINV_TAIL)
    result = op.Mul(wide, op.Where(op.Less(depth, constant(5, _DOUBLE)), middle, tail))
    is_end = op.Equal(op.Abs(wide), one)
    return op.Cast(op.Where(is_end, op.Mul(wide, constant(math.inf, _DOUBLE)), result), to=dtype_of(x))


def _polynomial(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """The highest power first."""
    value = constant(coefficients[0], _DOUBLE)
    for coefficient in coefficients[1:]:
        value = op.Add(op.Mul(value, x), constant(coefficient, _DOUBLE))
    return value


def _is_infinite(x: ir.Value) -> ir.Value:
    return op.Equal(op.Abs(x), constant(math.inf, _DOUBLE))


def logarithm(base: int) -> Callable[..., Any]:
    """log2 or log10, of every floating-point dtype; halves are computed in float32, as in torch."""

    def translate(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        wide = ir.DataType.FLOAT if dtype in NARROW else dtype
        result = op.Div(op.Log(x if dtype == wide else op.Cast(x, to=wide)), constant(math.log(base), wide))
        return result if dtype == wide else op.Cast(result, to=dtype)

    return translate


def _add_powers(x: ir.Value, other: ir.Value, log_base: float = 1.0) -> ir.Value:
    """logaddexp, or logaddexp2 with log(2): the greater, and log(1 + exp(-distance))."""
    dtype = dtype_of(x)
    distance = op.Abs(op.Sub(x, other))
    base = constant(log_base, dtype)
    more = op.Div(op.Log(op.Add(constant(1, dtype), op.Exp(op.Neg(op.Mul(distance, base))))), base)
    # Equal infinities: their distance is not a number.
    is_equal, doubled = op.Equal(x, other), op.Add(x, constant(math.log(2) / log_base, dtype))
    return op.Where(is_equal, doubled, op.Add(op.Max(x, other), more))


def translate_log1p(x: ir.Value) -> ir.Value:
    value = log1p_in(*at_least_float32(x))
    return op.CastLike(value, x) if dtype_of(x) in NARROW else value


def log1p_in(x: ir.Value, dtype: ir.DataType) -> ir.Value:
    """x * log(u) / (u - 1) with u = 1 + x rounded; x where u is 1. A product keeps the sign of 0, as Where does not."""
    one = constant(1, dtype)
    moved = op.Add(one, x)
    rounded = op.Sub(moved, one)
    is_end = op.Or(op.Equal(rounded, constant(0, dtype)), op.IsInf(rounded, detect_negative=0))
    return op.Mul(x, op.Where(is_end, one, op.Div(op.Log(moved), rounded)))


def translate_expm1(x: ir.Value) -> ir.Value:
    """x * (u - 1) / log(u) with u = exp(x) rounded; x where u is 1. It is -1 from -50 down."""
    wide, dtype = at_least_float32(x)
    one = constant(1, dtype)
    raised = op.Max(wide, constant(-50, dtype))
    power = op.Exp(raised)
    ratio = op.Where(op.IsInf(power), power, op.Div(op.Sub(power, one), op.Log(power)))
    value = op.Mul(raised, op.Where(op.Equal(power, one), one, ratio))
    return op.CastLike(value, x) if dtype_of(x) in NARROW else value


def at_least_float32(x: ir.Value) -> tuple[ir.Value, ir.DataType]:
    """A number of any dtype in one that has enough digits, and that dtype."""
    dtype = dtype_of(x)
    if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return x, dtype
    return op.Cast(x, to=ir.DataType.FLOAT), ir.DataType.FLOAT


def translate_rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return op.Div(constant(1, dtype_of(x)), op.Sqrt(x))


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


def translate_elu(x: ir.Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> ir.Value:
    """scale * x above 0, and alpha * scale * expm1(input_scale * x) below; expm1(x) is 2 t / (1 - t) with t = tanh(x / 2)."""
    wide, dtype = at_least_float32(x)
    tangent = op.Tanh(op.Mul(wide, constant(input_scale / 2, dtype)))
    quotient = op.Div(tangent, op.Sub(constant(1, dtype), tangent))
    above = wide if scale == 1 else op.Mul(wide, constant(scale, dtype))
    below = op.Mul(quotient, constant(2 * alpha * scale, dtype))
    chosen = op.Where(op.Greater(wide, constant(0, dtype)), above, below)
    return chosen if dtype == dtype_of(x) else op.CastLike(chosen, x)


def translate_log_sigmoid(x: ir.Value) -> ir.Value:
    """min(x, 0) - log1p(exp(-|x|)), in float64."""
    wide = op.Cast(x, to=_DOUBLE)
    rest = log1p_in(op.Exp(op.Neg(op.Abs(wide))), _DOUBLE)
    return op.Cast(op.Sub(op.Min(wide, constant(0, _DOUBLE)), rest), to=dtype_of(x))


def translate_log_sigmoid_forward(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Beside it a buffer, which on the CPU is not read by what a module may call."""
    return translate_log_sigmoid(x), op.Exp(op.Neg(op.Abs(x)))


def translate_gelu(x: ir.Value, *, approximate: str = "none") -> ir.Value:
    """(x * 0.5) * (1 + erf(x / sqrt 2)), or with tanh in place of erf."""
    dtype = dtype_of(x)
    if approximate == "tanh":
        cubed = op.Mul(constant(0.044715, dtype), op.Pow(x, constant(3, dtype)))
        inner = op.Tanh(op.Mul(constant(math.sqrt(2 / math.pi), dtype), op.Add(x, cubed)))
    else:
        inner = op.Erf(op.Div(x, constant(math.sqrt(2), dtype)))
    return op.Mul(op.Mul(x, constant(0.5, dtype)), op.Add(inner, constant(1, dtype)))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "elu": translate_elu,
    "celu": lambda x, alpha=1.0: translate_elu(x, alpha, 1.0, 1 / alpha),
    "selu": lambda x: translate_elu(x, *_SELU),
    "gelu": translate_gelu,
    "log_sigmoid": translate_log_sigmoid,
    "log_sigmoid_forward": translate_log_sigmoid_forward,
    "prims::frexp": translate_frexp,
    "rsqrt": translate_rsqrt,
    "log1p": translate_log1p,
    **dict.fromkeys(("expm1", "special_expm1"), translate_expm1),
    "log2": logarithm(2),
    "log10": logarithm(10),
    "logaddexp": _add_powers,
    "logaddexp2": lambda x, other: _add_powers(x, other, math.log(2)),
    "fmax": ignoring_nan("Max"),
    "fmin": ignoring_nan("Min"),
    "signbit": translate_signbit,
    "copysign.Tensor": translate_copysign,
    "hypot": translate_hypot,
    "lgamma": translate_lgamma,
    "digamma": translate_digamma,
    "erfinv": translate_erfinv,
}
