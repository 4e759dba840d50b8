"""Matrix products of groups of rows, each with a matrix of its own: the experts of a mixture.

aten::_grouped_mm, and `transformers::grouped_mm_fallback`, which stands for it in captured programs: its Python body asks
the offsets for their values, so that it cannot be inlined. torch.onnx (to 2.13) has neither.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    constant,
    dtype_of,
    ints,
    rank,
    size_vector,
    slice_axis,
    static_size,
)


def translate_grouped(rows: ir.Value, matrices: ir.Value, offsets: ir.Value) -> ir.Value:
    """Rows up to offsets[0] times matrices[0], from there to offsets[1] times matrices[1], ...; zeros for those beyond."""
    groups = static_size(matrices, 0)
    if groups is None or rank(rows) != 2 or rank(matrices) != 3:
        raise NotImplementedError("a grouped product of another form than rows by a fixed number of matrices")
    ends = op.Cast(offsets, to=ir.DataType.INT64)
    starts = op.Concat(ints(0), ends, axis=0)
    counts = op.Sub(op.Concat(ends, size_vector(rows, 0), axis=0), starts)
    pieces = _split(rows, counts, groups + 1)
    products = [
        op.MatMul(piece, op.Gather(matrices, constant(number, ir.DataType.INT64), axis=0))
        for number, piece in enumerate(pieces[:-1])
    ]
    left_over = slice_axis(counts, groups, WHOLE, 0)
    zeros = op.Expand(constant(0, dtype_of(rows)), op.Concat(left_over, size_vector(matrices, 2), axis=0))
    return op.Concat(*products, zeros, axis=0)


def _split(rows: ir.Value, counts: ir.Value, number: int) -> Sequence[ir.Value]:
    import onnxscript.evaluator

    node = ir.node("Split", [rows, counts], {"axis": 0}, num_outputs=number)
    onnxscript.evaluator.default().nodes.append(
        node
    )  # torch.onnx's recorder; `op.Split` takes counts or a number alone
    return node.outputs


def translate_grouped_mm(
    rows: ir.Value,
    matrices: ir.Value,
    offs: ir.Value | None = None,
    bias: ir.Value | None = None,
    out_dtype: int | None = None,
) -> ir.Value:
    if offs is None or bias is not None or out_dtype not in (None, -1, dtype_of(rows)):
        raise NotImplementedError("a grouped product without offsets, with a bias, or in another dtype")
    return translate_grouped(rows, matrices, offs)
