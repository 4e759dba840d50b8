"""Elements in order: sorted, counted, made unique.

aten::sort, sort.stable, argsort and topk, ascending and descending, of any dtype.

ONNX's TopK puts the lower index first among equals, which is what a stable sort does. NaN counts as the greatest, as in
torch; only +inf and the greatest finite number are not told apart. torch.onnx (to 2.13) has no stable sort, none of bool, and
a topk that loses NaN.

aten::bincount with weights, histc over the data's own range, unique_consecutive along an axis, unique of floats.

torch.onnx (to 2.13) refuses the first three; without weights, with a range and without an axis it goes on as before.
onnxruntime's Unique (to 1.27) takes NaN for equal to any number, and so loses numbers.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_scalar,
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


def translate_bincount(x: ir.Value, weights: ir.Value | None = None, minlength: int = 0) -> ir.Value:
    given = ir.DataType.INT64 if weights is None else dtype_of(weights)
    dtype = given if weights is None or given == ir.DataType.FLOAT else ir.DataType.DOUBLE
    places = op.Cast(x, to=ir.DataType.INT64)
    if weights is None:
        amounts = op.Expand(constant(1, dtype), op.Shape(x))
    else:
        amounts = op.Cast(weights, to=dtype)
    largest = op.ReduceMax(op.Concat(places, ints(minlength - 1), axis=0), ints(0), keepdims=1)
    none = op.Expand(constant(0, dtype), op.Add(largest, ints(1)))
    return op.ScatterElements(none, places, amounts, axis=0, reduction="add")


def translate_histc(x: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> ir.Value:  # noqa: A002
    from onnxscript.function_libs.torch_lib.ops.core import aten_histc

    if min != max:
        return aten_histc(x, bins, min, max)
    dtype = dtype_of(x)
    flat = op.Reshape(x, ints(-1))
    low, high = op.ReduceMin(flat, keepdims=0), op.ReduceMax(flat, keepdims=0)
    is_flat = op.Equal(low, high)
    one = constant(1, dtype)
    low, high = op.Where(is_flat, op.Sub(low, one), low), op.Where(is_flat, op.Add(high, one), high)
    scaled = op.Mul(op.Div(op.Sub(flat, low), op.Sub(high, low)), constant(bins, dtype))
    place = op.Min(op.Cast(scaled, to=ir.DataType.INT64), as_scalar(bins - 1))  # the upper end is in the last bin
    none = op.Expand(constant(0, dtype), ints(bins))
    return op.ScatterElements(none, place, op.Expand(one, op.Shape(flat)), axis=0, reduction="add")


def translate_unique_consecutive(
    x: ir.Value, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Runs of equal slices: one of each, the run that each slice is in, and the runs' lengths."""
    if dim is None:
        flat = op.Reshape(x, ints(-1))
        unique, inverse, counts = _runs(flat, 0, 1, dtype_of(x))
        return unique, op.Reshape(inverse, op.Shape(x), allowzero=1), counts
    return _runs(x, positive(dim, rank(x)), rank(x), dtype_of(x))


def translate_unique(
    x: ir.Value,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Of floats: sorted, and then runs of equals. Each NaN is a run of its own."""
    dtype = dtype_of(x)
    if not dtype.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return core.aten__unique2(x, sorted, return_inverse, return_counts)
    flat = op.Reshape(x, ints(-1))
    flat.type, flat.shape = x.type, ir.Shape([None])
    values, places = take_extreme(flat, size_vector(flat, 0), 0, largest=False)
    unique, runs, counts = _runs(values, 0, 1, dtype)
    return unique, op.Reshape(op.ScatterElements(runs, places, runs, axis=0), op.Shape(x), allowzero=1), counts


def _runs(x: ir.Value, axis: int, of_rank: int, dtype: ir.DataType) -> tuple[ir.Value, ir.Value, ir.Value]:
    compared = op.Cast(x, to=ir.DataType.INT64) if not dtype.is_floating_point() else x
    later, earlier = (op.Slice(compared, ints(start), ints(end), ints(axis)) for start, end in ((1, WHOLE), (0, -1)))
    is_other = op.Cast(op.Not(op.Equal(later, earlier)), to=ir.DataType.INT64)
    others = [place for place in range(of_rank) if place != axis]
    begins = op.ReduceMax(is_other, ints(*others), keepdims=0) if others else is_other
    count = op.Shape(x, start=axis, end=axis + 1)
    flags = op.Slice(op.Concat(ints(1), begins, axis=0), ints(0), count, ints(0))  # none for an empty axis
    inverse = op.Sub(op.CumSum(flags, as_scalar(0)), as_scalar(1))
    places = op.Reshape(op.NonZero(flags), ints(-1))
    ends = op.Concat(op.Slice(places, ints(1), ints(WHOLE), ints(0)), count, axis=0)
    return op.Gather(x, places, axis=axis), inverse, op.Sub(ends, places)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "topk": translate_topk,
    "sort": translate_sort,
    "sort.stable": translate_sort_stable,
    "bincount": translate_bincount,
    "histc": translate_histc,
    "unique_consecutive": translate_unique_consecutive,
    "_unique2": translate_unique,
}
