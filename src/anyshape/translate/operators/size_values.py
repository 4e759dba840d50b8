"""Functions that all translations use: sizes, axes and constants as ONNX values.

A size in an ATen argument is a Python int or a scalar ONNX value; both are taken wherever `Size` stands. Values that an
ONNX operator gave have no dtype yet, so constants beside them are made with the dtype that is wanted.

aten::mul, add, sub and pow by a number that is computed from sizes; aten::copy of something smaller; aten::scalar_tensor
and full in double precision, and full, zeros and ones of complex numbers.

torch.onnx (to 2.13) takes every scalar for a constant, copies what should be broadcast as it is, and makes a double of a
number that went through single precision.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
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


def flattened(value: ir.Value) -> ir.Value:
    """All elements along one axis."""
    flat = op.Reshape(value, ints(-1))
    flat.type, flat.shape = value.type, ir.Shape([None])
    return flat


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


_HALF = 0.5
_DOUBLE = ir.DataType.DOUBLE
_COMPLEX = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: _DOUBLE}


def by_scalar(name: str) -> Callable[..., Any]:
    """`Mul`, `Add` or `Sub`, in the tensor's own dtype: where another is wanted, torch has converted the tensor before."""

    def translate(x: ir.Value, other: ir.Value | float, alpha: ir.Value | float = 1) -> ir.Value:
        if not isinstance(other, ir.Value) and not isinstance(alpha, ir.Value):
            from onnxscript.function_libs.torch_lib.ops import core

            theirs = getattr(core, f"aten_{name.lower()}_scalar")
            return theirs(x, other) if name == "Mul" else theirs(x, other, alpha=alpha)
        number = _as_dtype(other, x)
        if isinstance(alpha, ir.Value) or alpha != 1:
            number = op.Mul(number, _as_dtype(alpha, x))
        return getattr(op, name)(x, number)

    return translate


def translate_pow(x: ir.Value, exponent: ir.Value | float) -> ir.Value:
    if not isinstance(exponent, ir.Value):
        from onnxscript.function_libs.torch_lib.ops import core

        # torch takes the square root, NaN for -inf; of float16 the power, inf for -inf.
        takes_root = dtype_of(x).is_floating_point() and dtype_of(x) != ir.DataType.FLOAT16
        if exponent == _HALF and takes_root:
            return op.Sqrt(x)
        if exponent == -_HALF and takes_root:
            return op.Reciprocal(op.Sqrt(x))
        return core.aten_pow_tensor_scalar(x, exponent)
    return op.Pow(x, _as_dtype(exponent, x))


def _as_dtype(number: ir.Value | float, x: ir.Value) -> ir.Value:
    return op.Cast(number, to=dtype_of(x)) if isinstance(number, ir.Value) else constant(number, dtype_of(x))


def translate_scalar_tensor(number: ir.Value | float, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    wanted = ir.DataType.FLOAT if dtype in (None, -1) else dtype
    return core.aten_scalar_tensor(_exact(number, wanted), dtype=wanted)


def translate_full(size: Any, number: ir.Value | complex, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    shape = size if isinstance(size, ir.Value) else ints(*size)
    if dtype in (None, -1) and isinstance(number, complex):
        dtype = ir.DataType.COMPLEX64
    if dtype in _COMPLEX and not isinstance(number, ir.Value):
        pair = constant([complex(number).real, complex(number).imag], _COMPLEX[ir.DataType(dtype)])
        return op.Expand(pair, op.Concat(shape, ints(2), axis=0))
    wanted = -1 if dtype is None else dtype
    return core.aten_full(shape, _exact(number, wanted), dtype=wanted)


def filled(number: int) -> Callable[..., Any]:
    """`zeros` or `ones`."""

    def translate(size: Any, *, dtype: int | None = None, **unused: Any) -> ir.Value:
        return translate_full(size, number, dtype=ir.DataType.FLOAT if dtype in (None, -1) else dtype)

    return translate


def _exact(number: ir.Value | complex, dtype: int | None) -> ir.Value | complex:
    return constant(number, ir.DataType.DOUBLE) if isinstance(number, float) and dtype == _DOUBLE else number


def translate_copy(x: ir.Value, src: ir.Value, non_blocking: bool = False) -> ir.Value:
    same_dtype = src if src.dtype == dtype_of(x) else op.Cast(src, to=dtype_of(x))
    if x.shape is not None and src.shape is not None and x.shape == src.shape:
        return op.Identity(same_dtype)
    return op.Expand(same_dtype, op.Shape(x))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "scalar_tensor": translate_scalar_tensor,
    "full": translate_full,
    "zeros": filled(0),
    "ones": filled(1),
    "copy": translate_copy,
    "mul.Scalar": by_scalar("Mul"),
    "add.Scalar": by_scalar("Add"),
    "sub.Scalar": by_scalar("Sub"),
    "pow.Tensor_Scalar": translate_pow,
}
