"""Reductions that ONNX has not for every dtype or number of elements: aten::amax and amin of bool, max and min of bool,
var, std and var_mean with a correction as large as the axis.

torch.onnx (to 2.13) writes a file that does not load for bool, and divides by a negative number where torch gives NaN.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import constant, dtype_of, ints, positive, rank


def extreme(name: str) -> Callable[..., Any]:
    """amax and amin, and max and min of all elements."""

    def translate(x: ir.Value, dim: Sequence[int] = (), keepdim: bool = False) -> ir.Value:
        axes = [positive(axis, rank(x)) for axis in dim] or list(range(rank(x)))
        if not rank(x):
            return op.Identity(x)
        is_bool = dtype_of(x) == ir.DataType.BOOL
        reduced = getattr(op, name)(
            op.Cast(x, to=ir.DataType.INT32) if is_bool else x, ints(*axes), keepdims=int(keepdim)
        )
        return op.Cast(reduced, to=ir.DataType.BOOL) if is_bool else reduced

    return translate


def extreme_with_index(name: str, index_name: str) -> Callable[..., Any]:
    """max.dim and min.dim: of equals, the first."""

    def translate(x: ir.Value, dim: int, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
        if not rank(x):
            return op.Identity(x), constant(0, ir.DataType.INT64)
        axis = positive(dim, rank(x))
        is_bool = dtype_of(x) == ir.DataType.BOOL
        key = op.Cast(x, to=ir.DataType.INT32) if is_bool else x
        value = getattr(op, name)(key, ints(axis), keepdims=int(keepdim))
        index = getattr(op, index_name)(key, axis=axis, keepdims=int(keepdim))
        return op.Cast(value, to=ir.DataType.BOOL) if is_bool else value, index

    return translate


def translate_var_mean(
    x: ir.Value, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """Squares about the mean over max(0, n - correction)."""
    dtype = dtype_of(x)
    axes = ints(*([positive(axis, rank(x)) for axis in dim] if dim else range(rank(x))))
    mean = op.ReduceMean(x, axes, keepdims=1)
    apart = op.Sub(x, mean)
    squares = op.ReduceSum(op.Mul(apart, apart), axes, keepdims=int(keepdim))
    count = op.ReduceProd(op.Gather(op.Shape(x), axes), keepdims=0)
    lowered = op.Sub(op.Cast(count, to=dtype), constant(1.0 if correction is None else float(correction), dtype))
    variance = op.Div(squares, op.Max(lowered, constant(0, dtype)))
    return variance, mean if keepdim else op.Squeeze(mean, axes)


def translate_var(
    x: ir.Value, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    return translate_var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def translate_std(
    x: ir.Value, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    return op.Sqrt(translate_var(x, dim, correction=correction, keepdim=keepdim))
