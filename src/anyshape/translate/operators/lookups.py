"""Rows of tables: aten::embedding and index_select, which refuse an index below 0; ONNX counts it from the end.

    embedding(table, ids)  ->  Gather(table, Where(ids < 0, rows, ids)), which fails at `rows`

Only where the indices are an input, parts of one, or sums, products and joins of such (`embedding(ids - 1)`): those that a
program computes otherwise, as places counted in a mask, are left as they are.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import constant, dtype_of, size_scalar, static_size

_MOVING = frozenset({"Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Gather", "Expand", "Identity"})
_COMPUTING = frozenset({"Add", "Sub", "Mul", "Concat"})


def translate_embedding(
    table: ir.Value, indices: ir.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ir.Value:
    return op.Gather(table, _refusing_negative(indices, table, 0), axis=0)


def translate_index_select(x: ir.Value, dim: int, index: ir.Value) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    is_plain = x.shape is not None and len(x.shape) > 0
    return core.aten_index_select(x, dim, _refusing_negative(index, x, dim) if is_plain else index)


def _refusing_negative(indices: ir.Value, table: ir.Value, axis: int) -> ir.Value:
    if not _is_given(indices) or not dtype_of(indices).is_signed():
        return indices
    dtype, known = dtype_of(indices), static_size(table, axis)
    rows = op.Cast(size_scalar(table, axis), to=dtype) if known is None else constant(known, dtype)
    refused = op.Where(op.Less(indices, constant(0, dtype)), rows, indices)
    refused.type, refused.shape = indices.type, indices.shape
    return refused


def _is_given(value: ir.Value) -> bool:
    """Whether it is an input, a part of one, or computed from one in a few ways."""
    pending, seen = [value], {value}
    while pending:
        each = pending.pop()
        producer = each.producer()
        if producer is None and each.const_value is None:
            return True
        if producer is not None and producer.op_type in (*_MOVING, *_COMPUTING):
            used = producer.inputs if producer.op_type in _COMPUTING else producer.inputs[:1]
            found = [value for value in used if value is not None and value not in seen]
            pending += found
            seen.update(found)
    return False


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "embedding": translate_embedding,
    "index_select": translate_index_select,
}
