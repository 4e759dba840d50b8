"""aten::scaled_dot_product_attention: a row whose mask hides every key weighs all values by zero, as in torch.

torch.onnx (to 2.13) takes tensors of four axes only. What depends on the mask alone (the bias, the rows without a key) is
computed from the mask: layers with one mask share these nodes, and nothing but one addition reads all scores once more.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.ranges import translate_repeat_interleave
from anyshape.translate.operators.size_values import constant, dtype_of, ints, lowest, rank, size_scalar


def translate_attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    attn_mask: ir.Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> ir.Value:
    if enable_gqa:
        groups = op.Div(size_scalar(query, -3), size_scalar(key, -3))
        key, value = (_typed(translate_repeat_interleave(heads, groups, -3), heads) for heads in (key, value))
    scores = _scores(query, key, scale)
    dtype, axis = dtype_of(query), rank(query) - 1
    if attn_mask is None:
        # The first key is seen from every row, also under a causal mask.
        seen = op.Add(scores, _bias(_causal(query, key), dtype)) if is_causal else scores
        return op.MatMul(op.Softmax(seen, axis=axis), value)
    axis = max(axis, rank(attn_mask) - 1)
    bias = _bias(attn_mask, dtype)
    if rank(attn_mask) == 0:
        return op.MatMul(op.Softmax(op.Add(scores, bias), axis=axis), value)
    lowest_bias = constant(lowest(dtype), dtype)
    is_hidden = op.Equal(op.ReduceMax(bias, ints(rank(attn_mask) - 1), keepdims=1), lowest_bias)
    # Such a row is computed as if it had no mask, and then replaced by zeros: x - x is 0, and NaN where a score is NaN or a
    # value NaN or infinite, as in torch. ReduceMax leaves out NaN, so a NaN of the mask has to stay in the bias.
    is_cleared = is_hidden if attn_mask.dtype == ir.DataType.BOOL else op.And(is_hidden, op.Equal(bias, lowest_bias))
    shown = op.Where(is_cleared, constant(0, dtype), bias)
    result = op.MatMul(op.Softmax(op.Add(scores, shown), axis=axis), value)
    return op.Where(is_hidden, op.Sub(result, result), result)


def _bias(mask: ir.Value, dtype: ir.DataType) -> ir.Value:
    """What is added to the scores: a mask of booleans as 0 and minus infinity, one of numbers as it is."""
    if mask.dtype == ir.DataType.BOOL:
        return op.Where(mask, constant(0, dtype), constant(lowest(dtype), dtype))
    return op.Cast(mask, to=dtype) if mask.dtype != dtype else mask


def _causal(query: ir.Value, key: ir.Value) -> ir.Value:
    """bool[L, S]: no step sees a later one."""
    zero, one = constant(0, ir.DataType.INT64), constant(1, ir.DataType.INT64)
    rows, columns = (op.Range(zero, size_scalar(value, -2), one) for value in (query, key))
    mask = op.GreaterOrEqual(op.Unsqueeze(rows, ints(1)), op.Unsqueeze(columns, ints(0)))
    return _known(mask, 2)


def _known(mask: ir.Value, axes: int) -> ir.Value:
    mask.type, mask.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([None] * axes)
    return mask


def _typed(heads: ir.Value, like: ir.Value) -> ir.Value:
    heads.type = like.type
    heads.shape = ir.Shape([None] * rank(like))
    return heads


def _scores(query: ir.Value, key: ir.Value, scale: float | None) -> ir.Value:
    last = rank(key)
    turned = op.Transpose(key, perm=[*range(last - 2), last - 1, last - 2])
    return op.Mul(op.MatMul(query, turned), _scale(query, scale, dtype_of(query)))


def _scale(query: ir.Value, scale: float | None, dtype: ir.DataType) -> ir.Value:
    if scale is not None and not isinstance(scale, ir.Value):
        return constant(float(scale), dtype)
    if scale is not None:
        return op.Cast(scale, to=dtype)
    return op.Reciprocal(op.Sqrt(op.Cast(size_scalar(query, -1), to=dtype)))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": translate_attention,
}
