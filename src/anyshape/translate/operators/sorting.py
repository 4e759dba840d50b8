"""aten::sort, sort.stable, argsort and topk, ascending and descending, of any dtype.

ONNX's TopK puts the lower index first among equals, which is what a stable sort does. NaN counts as the greatest, as in
torch; only +inf and the greatest finite number are not told apart. torch.onnx (to 2.13) has no stable sort, none of bool, and
a topk that loses NaN.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
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


def translate_topk(
    x: ir.Value,
    k: Size,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> tuple[ir.Value, ir.Value]:
    if rank(x) == 0:
        return op.Identity(x), constant(0, ir.DataType.INT64)
    return take_extreme(x, k, positive(dim, rank(x)), largest=largest)


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


def sort_key(x: ir.Value, dtype: ir.DataType, *, nan_is_least: bool = False) -> ir.Value:
    """`x` in a dtype that onnxruntime sorts and compares, in torch's order: NaN after all numbers, or before them."""
    key = comparable(x, dtype)
    if not dtype.is_floating_point():
        return key
    wide = _comparable_dtype(dtype)
    # Infinity makes room for NaN, which must come after it.
    end, limit = (-1, op.Max) if nan_is_least else (1, op.Min)
    greatest = constant(end * float(np.finfo(wide.numpy()).max), wide)
    return op.Where(op.IsNaN(key), constant(end * float("inf"), wide), limit(key, greatest))


def comparable(x: ir.Value, dtype: ir.DataType) -> ir.Value:
    """`x` in a dtype that onnxruntime sorts and compares."""
    wide = _comparable_dtype(dtype)
    return x if wide == dtype else op.Cast(x, to=wide)


def _comparable_dtype(dtype: ir.DataType) -> ir.DataType:
    if dtype in _SORTABLE:
        return dtype
    return ir.DataType.FLOAT if dtype.is_floating_point() else ir.DataType.INT64
