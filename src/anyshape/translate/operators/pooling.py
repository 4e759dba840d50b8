"""Adaptive pooling to a number of bins, at any input size: aten::adaptive_{avg,max}_pool{1,2,3}d.

Bin i of o over n places is [floor(i * n / o), ceil((i + 1) * n / o)). Bins differ in length and may overlap; each axis
is pooled by itself, through one Gather that reads hardly more than the axis has. torch.onnx (2.11 to 2.13) writes the
bins of the traced size, or nothing.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.reducing import extreme
from anyshape.translate.operators.size_values import (
    NARROW,
    Size,
    along,
    as_scalar,
    constant,
    count_up,
    dtype_of,
    ints,
    rank,
    size_scalar,
)
from anyshape.translate.operators.sorting import sort_key

_DOUBLE = ir.DataType.DOUBLE
_FINITE = frozenset({"Relu", "Sigmoid", "Tanh", "Clip", "Gelu", "Conv", "Gemm", "BatchNormalization", "Softmax"})
"""Activations and layers that do not give minus infinity for numbers."""
_PASSED_ON = {"MaxPool": 1, "Reshape": 1, "Transpose": 1, "Add": 2, "Mul": 2, "Concat": None}
"""What gives minus infinity only if one of its inputs does, of which so many are looked at."""


def adaptive_avg_pool(axes: int) -> Callable[..., Any]:
    def translate(x: ir.Value, output_size: Sequence[Size]) -> ir.Value:
        dtype = dtype_of(x)
        if dtype not in NARROW:
            return _average(x, list(output_size), rank(x), dtype)
        wide = op.Cast(x, to=ir.DataType.FLOAT)  # torch sums in float32 too
        return op.Cast(_average(wide, list(output_size), rank(x), ir.DataType.FLOAT), to=dtype)

    def _average(x: ir.Value, bins: list[Size], of_rank: int, dtype: ir.DataType) -> ir.Value:
        first = of_rank - axes
        if all(isinstance(count, int) and count == 1 for count in bins):
            return op.ReduceMean(x, ints(*range(first, of_rank)), keepdims=1)
        for axis, count in enumerate(bins, first):
            x = _average_axis(x, count, axis, of_rank, dtype)
        return x

    return translate


def _average_axis(x: ir.Value, bins: Size, axis: int, of_rank: int, dtype: ir.DataType) -> ir.Value:
    if isinstance(bins, int) and bins == 1:
        return op.ReduceMean(x, ints(axis), keepdims=1)
    places, is_inside, lengths = _windows(_size(x, axis), bins)
    window = op.Gather(x, places, axis=axis)  # the axis becomes two: bins, and places in a bin
    inside = op.Where(_before(is_inside, axis, of_rank), window, constant(0, dtype))
    total = op.ReduceSum(inside, ints(axis + 1), keepdims=0)
    return op.Div(total, along(op.Cast(lengths, to=dtype), axis, of_rank))


def adaptive_max_pool(axes: int) -> Callable[..., Any]:
    def translate(x: ir.Value, output_size: Sequence[Size]) -> tuple[ir.Value, ir.Value]:
        """The values, and where each was found in the flattened axes: the first of equals, or NaN."""
        of_rank, dtype = rank(x), dtype_of(x)
        first = of_rank - axes
        if all(isinstance(count, int) and count == 1 for count in output_size):
            return _maximum_of_all(x, first)
        sizes = [size_scalar(x, axis) for axis in range(first, of_rank)]
        found: list[ir.Value] = []
        # The last axis first: of equal values in several rows, the first row's is then taken.
        for axis in reversed(range(first, of_rank)):
            x, found = _maximum_axis(x, found, output_size[axis - first], axis, dtype)
            x.shape = ir.Shape([None] * of_rank)
        index = found[0]
        for place, size in zip(found[1:], sizes[1:], strict=True):
            index = op.Add(op.Mul(index, size), place)
        return x, index

    return translate


def _maximum_of_all(x: ir.Value, first: int) -> tuple[ir.Value, ir.Value]:
    """One bin for each axis from the first on."""
    axes = range(first, rank(x))
    before = [op.Shape(x, start=0, end=first)] if first else []
    flat = op.Reshape(x, op.Concat(*before, op.ReduceProd(op.Shape(x, start=first), keepdims=1), axis=0))
    place = op.ArgMax(sort_key(flat, dtype_of(x)), axis=first, keepdims=1)
    index = op.Reshape(place, op.Concat(*before, ints(*[1] * len(axes)), axis=0))
    return extreme("ReduceMax")(x, tuple(axes), True), index


def _maximum_axis(
    x: ir.Value, found: Sequence[ir.Value], bins: Size, axis: int, dtype: ir.DataType
) -> tuple[ir.Value, list[ir.Value]]:
    """The axis pooled, and the places on this axis before those that were already `found` on later ones."""
    of_rank = rank(x)
    places, _, _ = _windows(_size(x, axis), bins)
    window = op.Gather(x, places, axis=axis)
    first = op.ArgMax(sort_key(window, dtype), axis=axis + 1, keepdims=1)

    def pick(values: ir.Value) -> ir.Value:
        return op.Squeeze(op.GatherElements(values, first, axis=axis + 1), ints(axis + 1))

    here = op.Expand(_before(places, axis, of_rank), op.Shape(window))
    return pick(window), [pick(here), *(pick(op.Gather(other, places, axis=axis)) for other in found)]


def _windows(size: ir.Value, bins: Size) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The places of each bin, [bins, longest], repeating the last one; which of them are inside; the bins' lengths."""
    bins = as_scalar(bins)
    number = count_up(bins)
    one = constant(1, ir.DataType.INT64)
    start = op.Div(op.Mul(number, size), bins)
    end = op.Div(op.Sub(op.Add(op.Mul(op.Add(number, one), size), bins), one), bins)
    lengths = op.Sub(end, start)
    longest = op.Add(op.Div(op.Sub(op.Add(size, bins), one), bins), one)
    steps = op.Unsqueeze(count_up(longest), ints(0))
    lengths_column = op.Unsqueeze(lengths, ints(1))
    places = op.Add(op.Unsqueeze(start, ints(1)), op.Min(steps, op.Sub(lengths_column, one)))
    return places, op.Less(steps, lengths_column), lengths


def _before(table: ir.Value, axis: int, of_rank: int) -> ir.Value:
    """A table over (bins, places in a bin), to be broadcast where these two stand at `axis`."""
    later = of_rank - axis - 1
    return op.Unsqueeze(table, ints(*range(2, 2 + later))) if later else table


def _size(x: ir.Value, axis: int) -> ir.Value:
    return as_scalar(op.Shape(x, start=axis, end=axis + 1))


def max_pool(axes: int, *, with_indices: bool = False) -> Callable[..., Any]:
    """aten::max_pool{1,2,3}d: minus infinity where a window holds nothing else, NaN where it holds one; MaxPool of onnxruntime
    gives the lowest number. Its index is then that of the last NaN, or that of the first place of the window.

    Which windows do so, a second pooling finds out. Behind a layer it is left out.
    """

    def translate(x: ir.Value, *arguments: Any, **options: Any) -> ir.Value | tuple[ir.Value, ir.Value]:
        from onnxscript.function_libs.torch_lib.ops import nn

        theirs = getattr(nn, f"aten_max_pool{axes}d" + ("_with_indices" if with_indices else ""))
        pooled = theirs(x, *arguments, **options)
        dtype = dtype_of(x)
        if not dtype.is_floating_point() or _is_behind_layers(x):
            return pooled
        pool = getattr(nn, f"aten_max_pool{axes}d")
        lowest = constant(-math.inf, dtype)
        zero, one, two = (constant(number, dtype) for number in range(3))
        is_nan = op.IsNaN(x)
        counts = op.Where(is_nan, two, op.Cast(op.Not(op.Equal(x, lowest)), to=dtype))
        counts.shape = x.shape
        largest = pool(counts, *arguments, **options)
        values = op.Where(op.Greater(largest, zero), pooled[0] if with_indices else pooled, lowest)
        values = op.Where(op.Greater(largest, one), constant(math.nan, dtype), values)
        if not with_indices:
            return values
        place = _flat_places(x, axes)
        of_nan = op.Where(is_nan, place, constant(0, _DOUBLE))
        of_any = op.Expand(op.Neg(place), op.Shape(x))
        of_nan.shape = of_any.shape = x.shape
        first = op.Neg(pool(of_any, *arguments, **options))
        index = op.Where(op.Greater(largest, zero), pooled[1], _from_one(first))
        return values, op.Where(op.Greater(largest, one), _from_one(pool(of_nan, *arguments, **options)), index)

    return translate


def _flat_places(x: ir.Value, axes: int) -> ir.Value:
    """The number of each place in the last axes, flattened, from 1 on. As doubles: MaxPool has no int64."""
    shape = op.Shape(x, start=rank(x) - axes)
    numbers = count_up(op.Squeeze(op.ReduceProd(shape, keepdims=1), ints(0)))
    return op.Cast(op.Add(op.Reshape(numbers, shape), constant(1, ir.DataType.INT64)), to=_DOUBLE)


def _from_one(place: ir.Value) -> ir.Value:
    return op.Sub(op.Cast(place, to=ir.DataType.INT64), constant(1, ir.DataType.INT64))


def _is_behind_layers(value: ir.Value | None) -> bool:
    producer = None if value is None else value.producer()
    if producer is None or producer.op_type in _FINITE:
        return producer is not None
    if producer.op_type not in _PASSED_ON:
        return False
    return all(map(_is_behind_layers, producer.inputs[: _PASSED_ON[producer.op_type]]))


def avg_pool(axes: int) -> Callable[..., Any]:
    """aten::avg_pool{2,3}d with `divisor_override`, which torch.onnx (to 2.13) drops: each window's sum, divided."""

    def translate(
        x: ir.Value,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> ir.Value:
        from onnxscript.function_libs.torch_lib.ops import nn

        theirs = getattr(nn, f"aten_avg_pool{axes}d")
        arguments = (x, kernel_size, stride, padding, ceil_mode)
        if divisor_override is None:
            return theirs(*arguments, count_include_pad)
        if ceil_mode:
            x, arguments = _fill(x, axes, kernel_size, stride or kernel_size, padding)
        places = math.prod(kernel_size) ** (axes if len(kernel_size) == 1 else 1)
        return op.Mul(theirs(*arguments, True), constant(places / divisor_override, dtype_of(x)))

    return translate


def _fill(
    x: ir.Value, axes: int, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> tuple[ir.Value, tuple[Any, ...]]:
    """`x` with zeros at its ends, so that windows without padding or ceil_mode are those with; and how to pool it."""
    kernel, step, margin = (
        list(each) * axes if len(each) == 1 else list(each) for each in (kernel_size, stride, padding)
    )
    size = op.Shape(x, start=rank(x) - axes)
    room = op.Add(size, ints(*(2 * each for each in margin)))
    last = op.Div(op.Add(op.Sub(room, ints(*kernel)), ints(*(each - 1 for each in step))), ints(*step))
    # A window that begins in the margin behind is left out.
    begins_outside = op.GreaterOrEqual(op.Mul(last, ints(*step)), op.Add(size, ints(*margin)))
    last = op.Sub(last, op.Cast(begins_outside, to=ir.DataType.INT64))
    more = op.Max(op.Sub(op.Add(op.Mul(last, ints(*step)), ints(*kernel)), room), ints(0))
    still = [0] * (rank(x) - axes)
    pads = op.Concat(ints(*still, *margin, *still), op.Add(more, ints(*margin)), axis=0)
    filled = op.Pad(x, pads, constant(0, dtype_of(x)))
    filled.type, filled.shape = x.type, ir.Shape([None] * rank(x))
    return filled, (filled, kernel, step, [0] * axes, False)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "adaptive_avg_pool1d": adaptive_avg_pool(1),
    "adaptive_avg_pool2d": adaptive_avg_pool(2),
    "_adaptive_avg_pool2d": adaptive_avg_pool(2),
    "adaptive_avg_pool3d": adaptive_avg_pool(3),
    "_adaptive_avg_pool3d": adaptive_avg_pool(3),
    "adaptive_max_pool1d": adaptive_max_pool(1),
    "adaptive_max_pool2d": adaptive_max_pool(2),
    "adaptive_max_pool3d": adaptive_max_pool(3),
    **{f"max_pool{axes}d": max_pool(axes) for axes in (1, 2, 3)},
    **{f"max_pool{axes}d_with_indices": max_pool(axes, with_indices=True) for axes in (1, 2, 3)},
    "avg_pool2d": avg_pool(2),
    "avg_pool3d": avg_pool(3),
}
