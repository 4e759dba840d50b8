"""Scattered writes: aten::scatter, scatter_reduce, scatter_add, index_reduce, and index_put that adds along other axes.

torch.onnx (to 2.13) has a wrong scatter_reduce "mean", and refuses a source larger than its index, index_reduce, and
index_put with accumulate where an axis is left out. Of a larger source torch reads the part that the index covers.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    NARROW,
    along,
    constant,
    dtype_of,
    highest,
    ints,
    lowest,
    positive,
    rank,
)

_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


def translate_scatter_reduce(
    x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, *, include_self: bool = True
) -> ir.Value:
    if rank(x) == 0:
        shape = op.Shape(x)
        x, index, src = (_vector(value) for value in (x, index, src))
        return op.Reshape(_reduce(x, 0, index, src, reduce, include_self), shape)
    return _reduce(x, dim, index, _cover(src, index), reduce, include_self)


def _vector(value: ir.Value) -> ir.Value:
    vector = op.Reshape(value, ints(-1))
    vector.type, vector.shape = value.type, ir.Shape([None])
    return vector


def _cover(src: ir.Value, index: ir.Value) -> ir.Value:
    """The part of the source that the index covers."""
    if src.shape is not None and index.shape is not None and src.shape == index.shape:
        return src
    axes = rank(index)
    return op.Slice(src, ints(*[0] * axes), op.Shape(index), ints(*range(axes))) if axes else src


def _reduce(x: ir.Value, axis: int, index: ir.Value, src: ir.Value, reduce: str, include_self: bool) -> ir.Value:
    given = dtype_of(x)
    dtype = ir.DataType.FLOAT if given in NARROW else ir.DataType.INT32 if given == ir.DataType.BOOL else given
    if dtype != given:
        x, src = op.Cast(x, to=dtype), op.Cast(src, to=dtype)
    start = x
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": lowest(dtype), "amin": highest(dtype)}[reduce]
        start = op.ScatterElements(x, index, op.Expand(constant(neutral, dtype), op.Shape(index)), axis=axis)
    answer = op.ScatterElements(start, index, src, axis=axis, reduction=_REDUCTIONS[reduce])
    if reduce in ("amax", "amin") and dtype.is_floating_point():
        answer = _or_nan(answer, start, index, src, axis, dtype)
    if reduce == "mean":
        answer = _divide(answer, x, index, axis, dtype, include_self)
    return answer if dtype == given else op.Cast(answer, to=given)


def _or_nan(
    answer: ir.Value, start: ir.Value, index: ir.Value, src: ir.Value, axis: int, dtype: ir.DataType
) -> ir.Value:
    """NaN where one was among the values: onnxruntime's extremes keep or lose it by its place."""
    flags, more = (op.Cast(op.IsNaN(value), to=dtype) for value in (start, src))
    is_nan = op.Cast(op.ScatterElements(flags, index, more, axis=axis, reduction="max"), to=ir.DataType.BOOL)
    return op.Where(is_nan, constant(float("nan"), dtype), answer)


def _divide(
    total: ir.Value, x: ir.Value, index: ir.Value, axis: int, dtype: ir.DataType, include_self: bool
) -> ir.Value:
    own = op.Expand(constant(int(include_self), dtype), op.Shape(x))
    ones = op.Expand(constant(1, dtype), op.Shape(index))
    count = op.Max(op.ScatterElements(own, index, ones, axis=axis, reduction="add"), constant(1, dtype))
    if dtype.is_floating_point():
        return op.Div(total, count)
    # torch rounds down, ONNX towards zero.
    return op.Div(op.Sub(total, op.Mod(total, count)), count)


def translate_scatter(x: ir.Value, dim: int, index: ir.Value, src: ir.Value) -> ir.Value:
    if rank(x) == 0:
        shape = op.Shape(x)
        x, index, src = (_vector(value) for value in (x, index, src))
        return op.Reshape(op.ScatterElements(x, index, src, axis=0), shape)
    return op.ScatterElements(x, index, _cover(src, index), axis=dim)


def translate_scatter_with(x: ir.Value, dim: int, index: ir.Value, src: ir.Value, *, reduce: str) -> ir.Value:
    """The older aten::scatter.reduce: "add" and "multiply"."""
    return translate_scatter_reduce(x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


def translate_scatter_add(x: ir.Value, dim: int, index: ir.Value, src: ir.Value) -> ir.Value:
    return translate_scatter_reduce(x, dim, index, src, "sum")


def translate_index_reduce(
    x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduce: str, *, include_self: bool = True
) -> ir.Value:
    axis = positive(dim, rank(x))
    spread = op.Expand(along(index, axis, rank(x)), op.Shape(source))
    return _reduce(x, axis, spread, source, reduce, include_self)


def translate_put(x: ir.Value, index: ir.Value, source: ir.Value, accumulate: bool = False) -> ir.Value:
    """Into the flattened tensor; of equal places the last, or their sum."""
    flat, places, values = (op.Reshape(value, ints(-1)) for value in (x, index, source))
    written = op.ScatterElements(flat, places, values, axis=0, reduction="add" if accumulate else "none")
    return op.Reshape(written, op.Shape(x))


def translate_index_put(
    x: ir.Value, indices: Sequence[ir.Value | None], values: ir.Value, accumulate: bool = False
) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops.core import aten_index_put

    given = [index for index in indices if index is not None]
    is_mask = any(index.dtype == ir.DataType.BOOL for index in given)
    if not accumulate or is_mask or len(given) == len(indices):
        return aten_index_put(x, indices, values, accumulate)
    return _add_at(x, indices, values)


def _add_at(x: ir.Value, indices: Sequence[ir.Value | None], values: ir.Value) -> ir.Value:
    """The indexed axes first, one ScatterND, and all axes back in their places."""
    of_rank = rank(x)
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    others = [axis for axis in range(of_rank) if axis not in chosen]
    order = [*chosen, *others]
    turned = op.Transpose(x, perm=order)
    places = [index for index in indices if index is not None]
    width = max(rank(index) for index in places)
    shape = op.Shape(places[0])
    for index in places[1:]:
        shape = op.Shape(op.Add(op.Expand(constant(0, ir.DataType.INT64), shape), index))
    table = op.Concat(*(op.Unsqueeze(op.Expand(index, shape), ints(width)) for index in places), axis=-1)
    rest = op.Shape(turned, start=len(chosen)) if others else None
    updates = _place_values(values, shape, rest, chosen, others, width)
    added = op.ScatterND(turned, table, updates, reduction="add")
    back = [order.index(axis) for axis in range(of_rank)]
    return op.Transpose(added, perm=back)


def _place_values(
    values: ir.Value, shape: ir.Value, rest: ir.Value | None, chosen: Sequence[int], others: Sequence[int], width: int
) -> ir.Value:
    """The values with the index's axes first. Where indices stand side by side, torch has them in their place."""
    first = chosen[0] if chosen == list(range(chosen[0], chosen[-1] + 1)) else 0
    before = [axis for axis in others if axis < first]
    if rest is None:
        return op.Expand(values, shape)
    lead = op.Slice(rest, ints(0), ints(len(before)), ints(0)) if before else None
    tail = op.Slice(rest, ints(len(before)), ints(len(others)), ints(0)) if len(before) < len(others) else None
    parts = [part for part in (lead, shape, tail) if part is not None]
    wide = op.Expand(values, op.Concat(*parts, axis=0))
    total = width + len(others)
    moved = list(range(len(before), len(before) + width))
    return op.Transpose(wide, perm=[*moved, *(axis for axis in range(total) if axis not in moved)])
