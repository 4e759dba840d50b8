"""Search by halving: places in a sorted list, order statistics.

aten::searchsorted and bucketize: binary search, a few rounds whatever the sizes, no boundaries at all included.

torch.onnx (to 2.13) has neither at dynamic sizes. NaN counts as the greatest, as in torch.

Order statistics: aten::kthvalue, median, nanmedian and mode.

Of equal values torch's index may be any; ours is the first of them (the last, for mode, as torch's CPU kernel gives on
short axes). torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    NARROW,
    POWERS_OF_TWO,
    Size,
    Values,
    as_scalar,
    as_vector,
    constant,
    count_halvings,
    dtype_of,
    flattened,
    ints,
    positive,
    rank,
    repeat,
    size_vector,
    squeeze_both,
    static_size,
)
from anyshape.translate.operators.sorting import comparable, prefer_nan, sort_key, take_extreme

_FEW = 64
"""So few boundaries are compared with all at once."""


def translate_searchsorted(
    sorted_sequence: ir.Value,
    self: ir.Value | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> ir.Value:
    if sorter is not None:
        sorted_sequence = _sort_by(sorted_sequence, sorter)
    return _search(sorted_sequence, self, is_right=right or side == "right", out_int32=out_int32)


def translate_bucketize(
    self: ir.Value | float, boundaries: ir.Value, *, out_int32: bool = False, right: bool = False
) -> ir.Value:
    return _search(boundaries, self, is_right=right, out_int32=out_int32)


def _sort_by(sequence: ir.Value, sorter: ir.Value) -> ir.Value:
    ordered = op.GatherElements(sequence, sorter, axis=-1)
    ordered.type, ordered.shape = sequence.type, sequence.shape
    return ordered


def _search(sequence: ir.Value, wanted: ir.Value | float, *, is_right: bool, out_int32: bool) -> ir.Value:
    dtype = dtype_of(sequence)
    if not isinstance(wanted, ir.Value):
        wanted = constant(wanted, dtype if dtype.is_floating_point() else ir.DataType.FLOAT)
        dtype = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
        wanted.type, wanted.shape = ir.TensorType(dtype), ir.Shape([])
        sequence_key = comparable(op.Cast(sequence, to=dtype), dtype)
    else:
        dtype = _common_dtype(dtype, dtype_of(wanted))
        sequence_key = _comparable_in(sequence, dtype)
    wanted_key = _comparable_in(wanted, dtype)
    count = static_size(sequence, -1)
    if count is not None and count <= _FEW and rank(sequence) == 1:
        found = _count_below(sequence_key, wanted_key, rank(wanted), is_right=is_right)
    else:
        found = bisect(sequence_key, wanted_key, rank(sequence), count, is_right=is_right)
    return op.Cast(found, to=ir.DataType.INT32) if out_int32 else found


def _common_dtype(one: ir.DataType, other: ir.DataType) -> ir.DataType:
    """The dtype in which boundaries and numbers of two types are compared, as in torch: that of the floats if there are any."""
    if one == other:
        return one
    floats = [dtype for dtype in (one, other) if dtype.is_floating_point()]
    if set(floats) == set(NARROW):
        return ir.DataType.FLOAT
    return max(floats, key=lambda dtype: dtype.itemsize, default=ir.DataType.INT64)


def _comparable_in(value: ir.Value, dtype: ir.DataType) -> ir.Value:
    """A value of any dtype in this one, or in the nearest that onnxruntime compares."""
    return comparable(value if dtype_of(value) == dtype else op.Cast(value, to=dtype), dtype)


def _is_before(boundary: ir.Value, wanted: ir.Value, *, is_right: bool) -> ir.Value:
    # Not by Less: NaN is behind all boundaries.
    return op.Not(op.Greater(boundary, wanted) if is_right else op.GreaterOrEqual(boundary, wanted))


def _count_below(sequence: ir.Value, wanted: ir.Value, axis: int, *, is_right: bool) -> ir.Value:
    below = _is_before(sequence, op.Unsqueeze(wanted, ints(axis)), is_right=is_right)
    return op.ReduceSum(op.Cast(below, to=ir.DataType.INT64), ints(axis), keepdims=0)


def bisect(sequence: ir.Value, wanted: ir.Value, of_rank: int, known: int | None, *, is_right: bool) -> ir.Value:
    size = as_scalar(op.Shape(sequence, start=-1)) if known is None else as_scalar(known)
    one = constant(1, ir.DataType.INT64)
    none = op.Expand(constant(0, ir.DataType.INT64), op.Shape(wanted))

    def halve(number: ir.Value, low: ir.Value, high: ir.Value) -> Values:
        middle = op.Div(op.Add(low, high), constant(2, ir.DataType.INT64))
        inside = op.Min(middle, op.Sub(size, one))
        value = op.Gather(sequence, inside, axis=0) if of_rank == 1 else op.GatherElements(sequence, inside, axis=-1)
        goes_up = op.And(op.Less(low, high), _is_before(value, wanted, is_right=is_right))
        return op.Where(goes_up, op.Add(middle, one), low), op.Where(goes_up, high, op.Min(middle, high))

    rounds = count_halvings(op.Add(size, one)) if known is None else sum(power < known + 1 for power in POWERS_OF_TWO)
    states = [(none, ir.DataType.INT64), (op.Add(none, size), ir.DataType.INT64)]
    return repeat(rounds, states, halve)[0]


Pair = tuple[ir.Value, ir.Value]


def translate_kthvalue(x: ir.Value, k: Size, dim: int = -1, keepdim: bool = False) -> Pair:
    if rank(x) == 0:
        return op.Identity(x), constant(0, ir.DataType.INT64)
    axis = positive(dim, rank(x))
    values, places = take_extreme(x, k, axis, largest=False)
    return _last(values, axis, keepdim), _last(places, axis, keepdim)


def _last(values: ir.Value, axis: int, keepdim: bool) -> ir.Value:
    last = op.Slice(values, ints(-1), ints(2**63 - 1), ints(axis))
    return last if keepdim else op.Squeeze(last, ints(axis))


def translate_median_dim(x: ir.Value, dim: int, keepdim: bool = False) -> Pair:
    """The lower median; NaN where the axis has one."""
    if rank(x) == 0:
        return op.Identity(x), constant(0, ir.DataType.INT64)
    axis = positive(dim, rank(x))
    middle = op.Div(op.Add(size_vector(x, axis), ints(1)), ints(2))
    values, places = take_extreme(x, middle, axis, largest=False)
    result = _last(values, axis, True), _last(places, axis, True)
    if dtype_of(x).is_floating_point():
        result = prefer_nan(x, axis, *result)
    return squeeze_both(*result, axis, keepdim)


def translate_nanmedian_dim(x: ir.Value, dim: int, keepdim: bool = False) -> Pair:
    """The lower median of what is a number; NaN where nothing is."""
    if rank(x) == 0 or not dtype_of(x).is_floating_point():
        return translate_median_dim(x, dim, keepdim)
    axis = positive(dim, rank(x))
    values, places = take_extreme(x, size_vector(x, axis), axis, largest=False)
    numbers = op.ReduceSum(op.Cast(op.Not(op.IsNaN(x)), to=ir.DataType.INT64), ints(axis), keepdims=1)
    middle = op.Max(op.Div(op.Sub(numbers, ints(1)), ints(2)), ints(0))
    picked = op.GatherElements(values, middle, axis=axis), op.GatherElements(places, middle, axis=axis)
    return squeeze_both(*picked, axis, keepdim)


def translate_median(x: ir.Value) -> ir.Value:
    return translate_median_dim(flattened(x), 0)[0]


def translate_nanmedian(x: ir.Value) -> ir.Value:
    return translate_nanmedian_dim(flattened(x), 0)[0]


def translate_mode(x: ir.Value, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent value, the smallest of several. Counted by binary search in the sorted axis."""
    of_rank = rank(x)
    if of_rank == 0:
        return op.Identity(x), constant(0, ir.DataType.INT64)
    axis = positive(dim, of_rank)
    swapped = [*range(of_rank)]
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    turned = op.Transpose(x, perm=swapped)
    turned.type, turned.shape = x.type, ir.Shape([None] * of_rank)
    values, places = take_extreme(turned, size_vector(turned, of_rank - 1), of_rank - 1, largest=False)
    key = sort_key(values, dtype_of(x))
    begin = bisect(key, key, of_rank, None, is_right=False)
    end = bisect(key, key, of_rank, None, is_right=True)
    winner = op.ArgMax(op.Sub(end, begin), axis=-1, keepdims=1)
    last = op.Sub(op.GatherElements(end, winner, axis=-1), as_vector(1))
    picked = [op.GatherElements(table, last, axis=-1) for table in (values, places)]
    value, place = (op.Transpose(table, perm=swapped) for table in picked)
    return squeeze_both(value, place, axis, keepdim)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "searchsorted.Tensor": translate_searchsorted,
    "searchsorted.Scalar": translate_searchsorted,
    "bucketize.Tensor": translate_bucketize,
    "bucketize.Scalar": translate_bucketize,
    "kthvalue": translate_kthvalue,
    "median": translate_median,
    "median.dim": translate_median_dim,
    "nanmedian": translate_nanmedian,
    "nanmedian.dim": translate_nanmedian_dim,
    "mode": translate_mode,
}
