"""Order statistics: aten::kthvalue, median, nanmedian and mode.

Of equal values torch's index may be any; ours is the first of them (the last, for mode, as torch's CPU kernel gives on
short axes). torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.searching import bisect
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
from anyshape.translate.operators.sorting import prefer_nan, sort_key, take_extreme

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
    answer = _last(values, axis, True), _last(places, axis, True)
    if dtype_of(x).is_floating_point():
        answer = prefer_nan(x, axis, *answer)
    return answer if keepdim else (op.Squeeze(answer[0], ints(axis)), op.Squeeze(answer[1], ints(axis)))


def translate_nanmedian_dim(x: ir.Value, dim: int, keepdim: bool = False) -> Pair:
    """The lower median of what is a number; NaN where nothing is."""
    if rank(x) == 0 or not dtype_of(x).is_floating_point():
        return translate_median_dim(x, dim, keepdim)
    axis = positive(dim, rank(x))
    values, places = take_extreme(x, size_vector(x, axis), axis, largest=False)
    numbers = op.ReduceSum(op.Cast(op.Not(op.IsNaN(x)), to=ir.DataType.INT64), ints(axis), keepdims=1)
    middle = op.Max(op.Div(op.Sub(numbers, ints(1)), ints(2)), ints(0))
    picked = op.GatherElements(values, middle, axis=axis), op.GatherElements(places, middle, axis=axis)
    return picked if keepdim else (op.Squeeze(picked[0], ints(axis)), op.Squeeze(picked[1], ints(axis)))


def translate_median(x: ir.Value) -> ir.Value:
    return translate_median_dim(_flat(x), 0)[0]


def translate_nanmedian(x: ir.Value) -> ir.Value:
    return translate_nanmedian_dim(_flat(x), 0)[0]


def _flat(x: ir.Value) -> ir.Value:
    flat = op.Reshape(x, ints(-1))
    flat.type, flat.shape = x.type, ir.Shape([None])
    return flat


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
    return (value, place) if keepdim else (op.Squeeze(value, ints(axis)), op.Squeeze(place, ints(axis)))
