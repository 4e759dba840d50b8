"""aten::scaled_dot_product_attention with a mask: a row that is masked all over gives zeros, as in torch.

torch.onnx (to 2.13) gives such a row the mean of the values, and takes tensors of four axes only. Without a mask and with four
axes its own translation is used.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.repeating import translate_repeat_interleave
from anyshape.translate.operators.values import constant, dtype_of, ints, lowest, rank, size_scalar


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
    if attn_mask is None and rank(query) == 4:
        from onnxscript.function_libs.torch_lib.ops.nn import aten_scaled_dot_product_attention

        return aten_scaled_dot_product_attention(
            query, key, value, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        groups = op.Div(size_scalar(query, -3), size_scalar(key, -3))
        key, value = (_typed(translate_repeat_interleave(heads, groups, -3), heads) for heads in (key, value))
    if attn_mask is None:
        attn_mask = _causal(query, key) if is_causal else _known(constant(True, ir.DataType.BOOL), 0)
    return _attend(query, key, value, attn_mask, scale)


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


def _attend(query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value, scale: float | None) -> ir.Value:
    dtype = dtype_of(query)
    minus_infinity = constant(lowest(dtype), dtype)
    last = rank(key)
    turned = op.Transpose(key, perm=[*range(last - 2), last - 1, last - 2])
    scores = op.Mul(op.MatMul(query, turned), _scale(query, scale, dtype))
    if mask.dtype == ir.DataType.BOOL:
        scores = op.Where(mask, scores, minus_infinity)
    else:
        scores = op.Add(scores, op.Cast(mask, to=dtype) if mask.dtype != dtype else mask)
    axis = max(rank(query), rank(mask)) - 1
    is_seen = op.Greater(op.ReduceMax(scores, ints(axis), keepdims=1), minus_infinity)
    weights = op.Where(is_seen, op.Softmax(scores, axis=axis), constant(0, dtype))
    return op.MatMul(weights, value)


def _scale(query: ir.Value, scale: float | None, dtype: ir.DataType) -> ir.Value:
    if scale is not None and not isinstance(scale, ir.Value):
        return constant(float(scale), dtype)
    if scale is not None:
        return op.Cast(scale, to=dtype)
    return op.Reciprocal(op.Sqrt(op.Cast(size_scalar(query, -1), to=dtype)))
