"""Ranges of numbers, repetitions, and places of elements that are not zero.

aten::arange of floats: as many numbers as torch counts in double precision, each computed there.

torch.onnx (to 2.13) counts in single precision, which is one more or one less at some ends: `arange(0, 7, 0.7)`, for one.
Of integers, it is theirs.

aten::repeat_interleave by a number, which may be a size, and aten::nonzero_static.

torch.onnx (to 2.13) repeats by 1 where the number is a size, and has no nonzero_static.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    Size,
    as_scalar,
    as_vector,
    constant,
    count_up,
    ints,
    positive,
    rank,
    shape_of,
)

_DOUBLE, _INT64 = ir.DataType.DOUBLE, ir.DataType.INT64
Bound = ir.Value | float


def translate_arange(end: Bound, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(0, end, 1, dtype, lambda core: core.aten_arange(end, dtype=dtype))


def translate_arange_start(start: Bound, end: Bound, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(start, end, 1, dtype, lambda core: core.aten_arange_start(start, end, dtype=dtype))


def translate_arange_step(start: Bound, end: Bound, step: Bound = 1, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(start, end, step, dtype, lambda core: core.aten_arange_start_step(start, end, step, dtype=dtype))


def _count(start: Bound, end: Bound, step: Bound, dtype: int | None, theirs: Callable[[Any], ir.Value]) -> ir.Value:
    is_whole = not any(_is_float(bound) for bound in (start, end, step))
    if dtype in (-1, None):
        dtype = _INT64 if is_whole else ir.DataType.FLOAT
    wanted = ir.DataType(dtype)
    if not wanted.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return theirs(core)
    if is_whole:
        return op.Cast(op.Range(*(as_scalar(_plain(bound)) for bound in (start, end, step))), to=wanted)
    first, last, width = (_double(bound) for bound in (start, end, step))
    number = op.Cast(op.Ceil(op.Div(op.Sub(last, first), width)), to=_INT64)
    return write_steps(start, step, number, wanted)


def write_steps(start: Bound, step: Bound, number: Size, dtype: ir.DataType) -> ir.Value:
    """start, start + step, ... : that many."""
    steps = op.Mul(op.Cast(count_up(number), to=_DOUBLE), _double(step))
    return op.Cast(op.Add(_double(start), steps), to=dtype)


def _is_float(bound: Bound) -> bool:
    if isinstance(bound, ir.Value):
        return bound.dtype is not None and bound.dtype.is_floating_point()
    return isinstance(bound, float)


def _plain(bound: Bound) -> int | ir.Value:
    return bound if isinstance(bound, ir.Value) else int(bound)


def _double(bound: Bound) -> ir.Value:
    if not isinstance(bound, ir.Value):
        return constant(bound, _DOUBLE)
    return op.Cast(as_scalar(bound) if bound.dtype == _INT64 else op.Squeeze(bound), to=_DOUBLE)


def translate_repeat_interleave(
    x: ir.Value, repeats: Size, dim: int | None = None, *, output_size: Size | None = None
) -> ir.Value:
    if dim is None:
        return _repeat_axis(op.Reshape(x, ints(-1)), repeats, 0, 1)
    return _repeat_axis(x, repeats, positive(dim, rank(x)), rank(x))


def _repeat_axis(x: ir.Value, repeats: Size, axis: int, of_rank: int) -> ir.Value:
    """The axis becomes two, the second as long as there are repeats, and the two become one."""
    number = as_vector(repeats)
    before, after = shape_of(x, 0, axis), shape_of(x, axis + 1, of_rank)
    size = op.Shape(x, start=axis, end=axis + 1)
    wide = op.Expand(op.Unsqueeze(x, ints(axis + 1)), op.Concat(*before, size, number, *after, axis=0))
    return op.Reshape(wide, op.Concat(*before, op.Mul(size, number), *after, axis=0), allowzero=1)


def translate_nonzero_static(x: ir.Value, *, size: Size, fill_value: int = -1) -> ir.Value:
    """The first `size` places that are not zero, filled up where there are fewer."""
    found = op.Transpose(op.NonZero(x), perm=[1, 0])
    wanted = as_vector(size)
    cut = op.Slice(found, ints(0), wanted, ints(0))
    missing = op.Sub(wanted, op.Shape(cut, start=0, end=1))
    return op.Pad(cut, op.Concat(ints(0, 0), missing, ints(0), axis=0), constant(fill_value, ir.DataType.INT64))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "repeat_interleave.self_int": translate_repeat_interleave,
    "nonzero_static": translate_nonzero_static,
    "arange": translate_arange,
    "arange.start": translate_arange_start,
    "arange.start_step": translate_arange_step,
}
