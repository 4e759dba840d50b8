"""Reads and writes at places that are computed: rows of tables, scattered places, along diagonals, by strides.

Scattered writes: aten::scatter, scatter_reduce, scatter_add, index_reduce, and index_put that adds along other axes. torch.onnx
(to 2.13) has a wrong scatter_reduce "mean", and refuses a source larger than its index, index_reduce, and index_put with
accumulate where an axis is left out. Of a larger source torch reads the part that the index covers.

Reads along a diagonal, aten::diagonal and trace; writes along a diagonal or a stride: diagonal_scatter, as_strided_scatter.
torch.onnx (to 2.13) writes a diagonal as a sum of products with 0 and 1: NaN where an infinity or a NaN is beside the
diagonal. torch takes diagonal_scatter apart into a write in place that its own exporter does not accept.

Rows of tables: aten::embedding and index_select refuse an index below 0; ONNX counts it from the end.

    embedding(table, ids)  ->  Gather(table, Where(ids < 0, rows, ids)), which fails at `rows`

Only where the indices are an input, parts of one, or sums, products and joins of such (`embedding(ids - 1)`): those that a
program computes otherwise, as places counted in a mask, are left as they are.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    NARROW,
    Size,
    along,
    as_scalar,
    as_vector,
    constant,
    count_up,
    dtype_of,
    flattened,
    highest,
    ints,
    lowest,
    positive,
    rank,
    size_scalar,
    size_vector,
    static_size,
)

_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}
_MOVING = frozenset({"Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Gather", "Expand", "Identity"})
_COMPUTING = frozenset({"Add", "Sub", "Mul", "Concat"})


def translate_scatter_reduce(
    x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, *, include_self: bool = True
) -> ir.Value:
    if rank(x) == 0:
        shape = op.Shape(x)
        x, index, src = (flattened(value) for value in (x, index, src))
        return op.Reshape(_reduce(x, 0, index, src, reduce, include_self), shape)
    return _reduce(x, dim, index, _cover(src, index), reduce, include_self)


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
    result = op.ScatterElements(start, index, src, axis=axis, reduction=_REDUCTIONS[reduce])
    if reduce in ("amax", "amin") and dtype.is_floating_point():
        result = _or_nan(result, start, index, src, axis, dtype)
    if reduce == "mean":
        result = _divide(result, x, index, axis, dtype, include_self)
    return result if dtype == given else op.Cast(result, to=given)


def _or_nan(
    result: ir.Value, start: ir.Value, index: ir.Value, src: ir.Value, axis: int, dtype: ir.DataType
) -> ir.Value:
    """NaN where one was among the values: onnxruntime's extremes keep or lose it by its place."""
    flags, more = (op.Cast(op.IsNaN(value), to=dtype) for value in (start, src))
    is_nan = op.Cast(op.ScatterElements(flags, index, more, axis=axis, reduction="max"), to=ir.DataType.BOOL)
    return op.Where(is_nan, constant(float("nan"), dtype), result)


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
        x, index, src = (flattened(value) for value in (x, index, src))
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
    return op.Transpose(added, perm=[order.index(axis) for axis in range(of_rank)])


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


def translate_diagonal(x: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """Entry k is at row k - min(offset, 0), column k + max(offset, 0), gathered from both axes flattened into one."""
    of_rank = rank(x)
    first, second = positive(dim1, of_rank), positive(dim2, of_rank)
    kept = [axis for axis in range(of_rank) if axis not in (first, second)]
    rows, columns = size_scalar(x, first), size_scalar(x, second)
    skipped_rows, skipped_columns = max(-offset, 0), max(offset, 0)
    count = op.Min(op.Sub(rows, as_scalar(skipped_rows)), op.Sub(columns, as_scalar(skipped_columns)))
    step = op.Add(columns, as_scalar(1))
    start = op.Add(op.Mul(columns, as_scalar(skipped_rows)), as_scalar(skipped_columns))
    places = op.Add(start, op.Mul(count_up(op.Max(count, as_scalar(0))), step))
    turned = op.Transpose(x, perm=[*kept, first, second])
    sizes = op.Concat(*(size_vector(x, axis) for axis in kept), as_vector(op.Mul(rows, columns)), axis=0)
    return op.Gather(op.Reshape(turned, sizes, allowzero=1), places, axis=-1)


def translate_trace(x: ir.Value) -> ir.Value:
    """The sum of the diagonal; of integers in int64."""
    dtype = dtype_of(x)
    values = translate_diagonal(x)
    if not dtype.is_floating_point():
        values = op.Cast(values, to=ir.DataType.INT64)
    return op.ReduceSum(values, ints(0), keepdims=0)


def translate_diagonal_scatter(x: ir.Value, src: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """The source's last axis is the diagonal: entry k stands at row k - min(offset, 0), column k + max(offset, 0)."""
    of_rank = rank(x)
    first, second = positive(dim1, of_rank), positive(dim2, of_rank)
    order = [*(axis for axis in range(of_rank) if axis not in (first, second)), first, second]
    turned = op.Transpose(x, perm=order)
    rows = count_up(as_scalar(op.Shape(turned, start=-2, end=-1)))
    columns = count_up(as_scalar(op.Shape(turned, start=-1)))
    is_diagonal = op.Equal(op.Add(op.Unsqueeze(rows, ints(1)), as_scalar(offset)), columns)
    last = op.Sub(as_scalar(op.Shape(src, start=-1)), as_scalar(1))
    entry = op.Max(op.Min(op.Add(rows, as_scalar(min(offset, 0))), last), as_scalar(0))
    values = op.Unsqueeze(op.Gather(src, entry, axis=-1), ints(-1))
    written = op.Where(is_diagonal, values, turned)
    return op.Transpose(written, perm=[order.index(axis) for axis in range(of_rank)])


def translate_as_strided_scatter(
    x: ir.Value, src: ir.Value, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None
) -> ir.Value:
    """In the flattened tensor: what the strides mean where it lies in memory in order, as every ONNX tensor does."""
    places = as_scalar(storage_offset or 0)
    for count, step in zip(size, stride, strict=True):
        places = op.Add(op.Unsqueeze(places, ints(-1)), op.Mul(count_up(count), as_scalar(step)))
    flat = op.Reshape(x, ints(-1))
    written = op.ScatterElements(flat, op.Reshape(places, ints(-1)), op.Reshape(src, ints(-1)), axis=0)
    return op.Reshape(written, op.Shape(x))


def translate_embedding(
    table: ir.Value, indices: ir.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ir.Value:
    return op.Gather(table, _refusing_negative(indices, table, 0), axis=0)


def translate_index_select(x: ir.Value, dim: int, index: ir.Value) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    is_plain = x.shape is not None and len(x.shape) > 0
    return core.aten_index_select(x, dim, _refusing_negative(index, x, dim) if is_plain else index)


def _refusing_negative(indices: ir.Value, table: ir.Value, axis: int) -> ir.Value:
    if not _is_given(indices) or not dtype_of(indices).is_signed():
        return indices
    dtype, known = dtype_of(indices), static_size(table, axis)
    rows = op.Cast(size_scalar(table, axis), to=dtype) if known is None else constant(known, dtype)
    refused = op.Where(op.Less(indices, constant(0, dtype)), rows, indices)
    refused.type, refused.shape = indices.type, indices.shape
    return refused


def _is_given(value: ir.Value) -> bool:
    """Whether it is an input, a part of one, or computed from one in a few ways."""
    pending, seen = [value], {value}
    while pending:
        each = pending.pop()
        producer = each.producer()
        if producer is None and each.const_value is None:
            return True
        if producer is not None and producer.op_type in (*_MOVING, *_COMPUTING):
            used = producer.inputs if producer.op_type in _COMPUTING else producer.inputs[:1]
            found = [value for value in used if value is not None and value not in seen]
            pending += found
            seen.update(found)
    return False


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "embedding": translate_embedding,
    "index_select": translate_index_select,
    "diagonal": translate_diagonal,
    "diagonal_copy": translate_diagonal,
    "trace": translate_trace,
    "diagonal_scatter": translate_diagonal_scatter,
    "as_strided_scatter": translate_as_strided_scatter,
    "scatter_reduce.two": translate_scatter_reduce,
    "scatter.src": translate_scatter,
    "scatter.reduce": translate_scatter_with,
    "scatter_add": translate_scatter_add,
    "index_reduce": translate_index_reduce,
    "index_put": translate_index_put,
    "put": translate_put,
}
