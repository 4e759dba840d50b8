"""Writes along a diagonal or a stride: aten::diagonal_scatter and as_strided_scatter.

torch takes the first apart into a write in place that its own exporter does not accept; torch.onnx (to 2.13) has neither.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import Size, as_scalar, count_up, ints, positive, rank


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
