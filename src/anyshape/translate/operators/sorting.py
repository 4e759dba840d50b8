"""aten::sort, sort.stable and argsort, ascending and descending, of any dtype.

ONNX's TopK puts the lower index first among equals, which is what a stable sort does. NaN counts as the greatest, as in
torch; only NaN and +inf on the same axis are not told apart. torch.onnx (to 2.13) has no stable sort, and none of bool.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import (
    Size,
    as_vector,
    constant,
    dtype_of,
    positive,
    rank,
    size_vector,
)

_SORTABLE = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.INT32)


def translate_sort(x: ir.Value, dim: int = -1, descending: bool = False) -> tuple[ir.Value, ir.Value]:
    if rank(x) == 0:
        return op.Identity(x), constant(0, ir.DataType.INT64)
    axis = positive(dim, rank(x))
    return take_extreme(x, size_vector(x, axis), axis, largest=descending)


def translate_sort_stable(
    x: ir.Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[ir.Value, ir.Value]:
    return translate_sort(x, dim, descending)


def take_extreme(x: ir.Value, count: Size, axis: int, *, largest: bool) -> tuple[ir.Value, ir.Value]:
    """The `count` smallest or largest of an axis in order, with their places."""
    dtype = dtype_of(x)
    key = sort_key(x, dtype)
    values, places = op.TopK(key, as_vector(count), axis=axis, largest=int(largest), sorted=1)
    exact = dtype in _SORTABLE and not dtype.is_floating_point()
    return (values if exact else op.GatherElements(x, places, axis=axis)), places


def sort_key(x: ir.Value, dtype: ir.DataType) -> ir.Value:
    """`x` in a dtype that onnxruntime sorts and compares, in torch's order."""
    if dtype.is_floating_point():
        wide = ir.DataType.DOUBLE if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
        key = op.Cast(x, to=wide) if wide != dtype else x
        return op.Where(op.IsNaN(key), constant(float("inf"), wide), key)
    return x if dtype in _SORTABLE else op.Cast(x, to=ir.DataType.INT64)
