"""aten::arange of floats: as many numbers as torch counts in double precision, each computed there.

torch.onnx (to 2.13) counts in single precision, which is one more or one less at some ends: `arange(0, 7, 0.7)`, for one.
Of integers, it is theirs.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_scalar, constant, count_up

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
