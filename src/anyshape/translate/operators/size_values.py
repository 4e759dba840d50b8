"""Sizes, axes and constants as ONNX values: the small change of every translation.

A size in an ATen argument is a Python int or a scalar ONNX value; both are taken wherever `Size` stands. Values that an
ONNX operator gave have no dtype yet, so constants beside them are made with the dtype that is wanted.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

Size = int | ir.Value

WHOLE = 2**63 - 1
"""The end of a slice that goes to the end."""

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Whose sums, counts and quotients may be too large for them, or too coarse: computed in float32, as torch does."""

POWERS_OF_TWO = tuple(2**exponent for exponent in range(62))


def rank(value: ir.Value) -> int:
    if value.shape is None:
        raise ValueError(f"the rank of {value.name} is not known")
    return len(value.shape)


def dtype_of(value: ir.Value) -> ir.DataType:
    if value.dtype is None:
        raise ValueError(f"the dtype of {value.name} is not known")
    return value.dtype


def static_size(value: ir.Value, axis: int) -> int | None:
    """The size of an axis, where it is the same in every call."""
    size = value.shape[axis] if value.shape is not None else None
    return size if isinstance(size, int) else None


def positive(axis: int, of_rank: int) -> int:
    return axis % max(of_rank, 1)


def constant(number: Any, dtype: ir.DataType) -> ir.Value:
    """A constant of any shape, in exactly this dtype."""
    return op.Constant(value=ir.tensor(number, dtype=dtype))


def ints(*sizes: Size) -> ir.Value:
    """int64[len(sizes)]."""
    if all(isinstance(size, int) for size in sizes):
        return constant(list(sizes), ir.DataType.INT64)
    return op.Concat(*(as_vector(size) for size in sizes), axis=0)


def as_vector(size: Size) -> ir.Value:
    """int64[1]."""
    return constant([size], ir.DataType.INT64) if isinstance(size, int) else op.Reshape(size, ints(1))


def as_scalar(size: Size) -> ir.Value:
    """int64, without axes."""
    return constant(size, ir.DataType.INT64) if isinstance(size, int) else op.Reshape(size, _no_axes())


def _no_axes() -> ir.Value:
    return op.Constant(value=ir.Tensor(_empty_int64()))


def _empty_int64() -> Any:
    import numpy as np

    return np.zeros((0,), dtype=np.int64)


def size_vector(value: ir.Value, axis: int) -> ir.Value:
    """The size of an axis, int64[1]."""
    size = static_size(value, axis) if value.shape is not None else None
    if size is not None:
        return as_vector(size)
    return op.Shape(value, start=axis, end=axis + 1) if axis != -1 else op.Shape(value, start=-1)


def size_scalar(value: ir.Value, axis: int) -> ir.Value:
    return as_scalar(op.Squeeze(size_vector(value, axis)))


def count_up(size: Size) -> ir.Value:
    """0, 1, ... size - 1."""
    return op.Range(as_scalar(0), as_scalar(size), as_scalar(1))


def along(vector: ir.Value, axis: int, of_rank: int) -> ir.Value:
    """A vector, shaped to be broadcast along one axis."""
    return op.Reshape(vector, ints(*(-1 if place == axis else 1 for place in range(of_rank))))


def slice_axis(value: ir.Value, start: Size, end: Size, axis: int, step: int = 1) -> ir.Value:
    return op.Slice(value, as_vector(start), as_vector(end), ints(axis), ints(step))


def shape_of(value: ir.Value, start: int, end: int) -> list[ir.Value]:
    """The sizes of some axes, for a Concat; nothing where there are none.

    Not by Slice: onnxscript's optimizer makes one Split of neighbouring slices, also where one of them is empty.
    """
    return [op.Shape(value, start=start, end=end)] if start < end else []


def count_halvings(size: Size) -> ir.Value:
    """How often a doubling width, from 1, stays below `size`: the rounds of a binary search or of a doubling scan."""
    below = op.Less(ints(*POWERS_OF_TWO), as_vector(size))
    return op.ReduceSum(op.Cast(below, to=ir.DataType.INT64), ints(0), keepdims=0)


def is_floating(dtype: ir.DataType) -> bool:
    return dtype.is_floating_point()


def lowest(dtype: ir.DataType) -> Any:
    """What no value is below."""
    return _bound(dtype, highest=False)


def highest(dtype: ir.DataType) -> Any:
    return _bound(dtype, highest=True)


def _bound(dtype: ir.DataType, *, highest: bool) -> Any:
    import numpy as np

    if dtype == ir.DataType.BOOL:
        return highest
    if dtype.is_floating_point():
        return float("inf") if highest else float("-inf")
    info = np.iinfo(dtype.numpy())
    return int(info.max if highest else info.min)
