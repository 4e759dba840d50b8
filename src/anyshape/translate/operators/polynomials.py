"""Orthogonal polynomials of an order that is a tensor too: aten::special_{shifted_,}chebyshev_polynomial_{t,u,v,w},
hermite_polynomial_{h,he}, laguerre_polynomial_l and legendre_polynomial_p.

All follow p[k + 1] = (a x + b) p[k] - c p[k - 1]; one round of an ONNX `Loop` an order, and each element keeps the one it asks
for. torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.loop_nodes import Values, repeat
from anyshape.translate.operators.size_values import as_scalar, constant, dtype_of

Step = Callable[[Any, ir.Value, ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True)
class Family:
    """p[0] = 1, p[1] = slope x + offset, and the next from (k, x, p[k], p[k - 1]); `is_shifted`: x stands for 2 x - 1."""

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
