"""aten::repeat_interleave by a number, which may be a size, and aten::nonzero_static.

torch.onnx (to 2.13) repeats by 1 where the number is a size, and has no nonzero_static.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_vector, constant, ints, positive, rank, shape_of


def translate_repeat_interleave(
    x: ir.Value, repeats: Size, dim: int | None = None, *, output_size: Size | None = None
) -> ir.Value:
    if dim is None:
        return _repeat_axis(op.Reshape(x, ints(-1)), repeats, 0, 1)
    return _repeat_axis(x, repeats, positive(dim, rank(x)), rank(x))


def _repeat_axis(x: ir.Value, repeats: Size, axis: int, of_rank: int) -> ir.Value:
    """The axis becomes two, the second as long as there are repeats, and the two become one."""
    number = as_vector(repeats)
    before, after = shape_of(x, 0, axis), shape_of(x, axis + 1, of_rank)
    size = op.Shape(x, start=axis, end=axis + 1)
    wide = op.Expand(op.Unsqueeze(x, ints(axis + 1)), op.Concat(*before, size, number, *after, axis=0))
    return op.Reshape(wide, op.Concat(*before, op.Mul(size, number), *after, axis=0), allowzero=1)


def translate_nonzero_static(x: ir.Value, *, size: Size, fill_value: int = -1) -> ir.Value:
    """The first `size` places that are not zero, filled up where there are fewer."""
    found = op.Transpose(op.NonZero(x), perm=[1, 0])
    wanted = as_vector(size)
    cut = op.Slice(found, ints(0), wanted, ints(0))
    missing = op.Sub(wanted, op.Shape(cut, start=0, end=1))
    return op.Pad(cut, op.Concat(ints(0, 0), missing, ints(0), axis=0), constant(fill_value, ir.DataType.INT64))
