"""Operators whose ONNX counterparts answer otherwise for NaN, infinities or large halves: clamp, sign, logsumexp.

Clip without a bound clips infinities in onnxruntime, Sign of NaN is NaN (0 in torch), and ReduceLogSumExp overflows in half
precision.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import constant, dtype_of, ints


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "clamp": translate_clamp,
    "clamp_min": translate_clamp,
    "clamp_max": translate_clamp_max,
    "sign": translate_sign,
    "logsumexp": translate_logsumexp,
}
