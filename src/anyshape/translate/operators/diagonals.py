"""Reads along a diagonal, aten::diagonal and trace; writes along a diagonal or a stride: diagonal_scatter, as_strided_scatter.

torch.onnx (to 2.13) writes a diagonal as a sum of products with 0 and 1: NaN where an infinity or a NaN is beside the
diagonal. torch takes diagonal_scatter apart into a write in place that its own exporter does not accept; torch.onnx has
neither of the two writes.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    Size,
    as_scalar,
    as_vector,
    count_up,
    dtype_of,
    ints,
    positive,
    rank,
    size_scalar,
    size_vector,
)


def translate_diagonal(x: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """Entry k is at row k - min(offset, 0), column k + max(offset, 0), gathered from both axes flattened into one."""
    of_rank = rank(x)
    first, second = positive(dim1, of_rank), positive(dim2, of_rank)
    kept = [axis for axis in range(of_rank) if axis not in (first, second)]
    rows, columns = size_scalar(x, first), size_scalar(x, second)
    skipped_rows, skipped_columns = max(-offset, 0), max(offset, 0)
    count = op.Min(op.Sub(rows, as_scalar(skipped_rows)), op.Sub(columns, as_scalar(skipped_columns)))
    step = op.Add(columns, as_scalar(1))
    start = op.Add(op.Mul(columns, as_scalar(skipped_rows)), as_scalar(skipped_columns))
    places = op.Add(start, op.Mul(count_up(op.Max(count, as_scalar(0))), step))
    turned = op.Transpose(x, perm=[*kept, first, second])
    sizes = op.Concat(*(size_vector(x, axis) for axis in kept), as_vector(op.Mul(rows, columns)), axis=0)
    return op.Gather(op.Reshape(turned, sizes, allowzero=1), places, axis=-1)


def translate_trace(x: ir.Value) -> ir.Value:
    """The sum of the diagonal; of integers in int64."""
    dtype = dtype_of(x)
    values = translate_diagonal(x)
    if not dtype.is_floating_point():
        values = op.Cast(values, to=ir.DataType.INT64)
    return op.ReduceSum(values, ints(0), keepdims=0)


def translate_diagonal_scatter(x: ir.Value, src: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """The source's last axis is the diagonal: entry k stands at row k - min(offset, 0), column k + max(offset, 0)."""
    of_rank = rank(x)
    first, second = positive(dim1, of_rank), positive(dim2, of_rank)
    order = [*(axis for axis in range(of_rank) if axis not in (first, second)), first, second]
    turned = op.Transpose(x, perm=order)
    rows = count_up(as_scalar(op.Shape(turned, start=-2, end=-1)))
    columns = count_up(as_scalar(op.Shape(turned, start=-1)))
    is_diagonal = op.Equal(op.Add(op.Unsqueeze(rows, ints(1)), as_scalar(offset)), columns)
    last = op.Sub(as_scalar(op.Shape(src, start=-1)), as_scalar(1))
    entry = op.Max(op.Min(op.Add(rows, as_scalar(min(offset, 0))), last), as_scalar(0))
    values = op.Unsqueeze(op.Gather(src, entry, axis=-1), ints(-1))
    written = op.Where(is_diagonal, values, turned)
    return op.Transpose(written, perm=[order.index(axis) for axis in range(of_rank)])


def translate_as_strided_scatter(
    x: ir.Value, src: ir.Value, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None
) -> ir.Value:
    """In the flattened tensor: what the strides mean where it lies in memory in order, as every ONNX tensor does."""
    places = as_scalar(storage_offset or 0)
    for count, step in zip(size, stride, strict=True):
        places = op.Add(op.Unsqueeze(places, ints(-1)), op.Mul(count_up(count), as_scalar(step)))
    flat = op.Reshape(x, ints(-1))
    written = op.ScatterElements(flat, op.Reshape(places, ints(-1)), op.Reshape(src, ints(-1)), axis=0)
    return op.Reshape(written, op.Shape(x))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "diagonal": translate_diagonal,
    "diagonal_copy": translate_diagonal,
    "trace": translate_trace,
    "diagonal_scatter": translate_diagonal_scatter,
    "as_strided_scatter": translate_as_strided_scatter,
}
