"""Operators whose ONNX counterparts give other results for NaN, infinities or large halves: clamp, sign, logsumexp, heaviside,
logit, xlogy and pow.

Clip without a bound clips infinities in onnxruntime, Sign of NaN is NaN (0 in torch), and ReduceLogSumExp overflows in half
precision. torch.onnx (to 2.13) writes a heaviside that is 1 for NaN, a logit with `eps` that loses NaN, 0 for xlogy(0, NaN);
and Pow(-inf, 0.5) is inf, whereas torch takes the square root.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import constant, dtype_of, ints


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
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
}
