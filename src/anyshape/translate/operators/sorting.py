"""aten::sort, sort.stable and argsort, ascending and descending, of any dtype.

ONNX's TopK puts the lower index first among equals, which is what a stable sort does. NaN counts as the greatest, as in
torch; only +inf and the greatest finite number are not told apart. torch.onnx (to 2.13) has no stable sort, none of bool.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import (
    Size,
    as_vector,
    constant,
    dtype_of,
    ints,
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


def prefer_nan(x: ir.Value, axis: int, value: ir.Value, place: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The first NaN of an axis and its place, where it has one; else the value and place that are given, of size 1."""
    wide = x if dtype_of(x) in _SORTABLE else op.Cast(x, to=ir.DataType.FLOAT)
    is_nan = op.Cast(op.IsNaN(wide), to=ir.DataType.INT32)
    first = op.ArgMax(is_nan, axis=axis, keepdims=1)
    has_nan = op.Cast(op.ReduceMax(is_nan, ints(axis), keepdims=1), to=ir.DataType.BOOL)
    return op.Where(has_nan, op.GatherElements(x, first, axis=axis), value), op.Where(has_nan, first, place)


def sort_key(x: ir.Value, dtype: ir.DataType) -> ir.Value:
    """`x` in a dtype that onnxruntime sorts and compares, in torch's order."""
    if dtype.is_floating_point():
        wide = ir.DataType.DOUBLE if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
        key = op.Cast(x, to=wide) if wide != dtype else x
        # Infinity makes room for NaN, which must come after it.
        greatest = constant(float(np.finfo(wide.numpy()).max), wide)
        return op.Where(op.IsNaN(key), constant(float("inf"), wide), op.Min(key, greatest))
    return x if dtype in _SORTABLE else op.Cast(x, to=ir.DataType.INT64)
