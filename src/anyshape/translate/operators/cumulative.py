"""Prefix operators: aten::cumprod, cummax, cummin and logcumsumexp, along an axis of any length, 0 included.

torch.onnx (to 2.13) has none of the first three, and a logcumsumexp that overflows. cumprod of float32 runs in float64,
as torch's own kernel does.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.loop_nodes import Values, accumulate
from anyshape.translate.operators.size_values import (
    Size,
    along,
    constant,
    count_up,
    dtype_of,
    positive,
    rank,
    size_scalar,
    static_size,
)


def translate_cumprod(x: ir.Value, dim: int, *, dtype: int | None = None) -> ir.Value:
    given = dtype_of(x)
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else _promoted(given)
    if rank(x) == 0:
        return op.Cast(x, to=wanted)
    working = ir.DataType.DOUBLE if wanted.is_floating_point() else ir.DataType.INT64
    axis = positive(dim, rank(x))
    (product,) = accumulate(
        [(op.Cast(op.Cast(x, to=wanted), to=working), working)],
        axis,
        _size(x, axis),
        rank(x),
        lambda earlier, later: [op.Mul(earlier[0], later[0])],
    )
    return op.Cast(product, to=wanted)


def _promoted(dtype: ir.DataType) -> ir.DataType:
    return dtype if dtype.is_floating_point() else ir.DataType.INT64


def translate_logcumsumexp(x: ir.Value, dim: int) -> ir.Value:
    if rank(x) == 0:
        return op.Identity(x)
    dtype = dtype_of(x)
    axis = positive(dim, rank(x))

    def combine(earlier: Values, later: Values) -> Values:
        lower, upper = op.Min(earlier[0], later[0]), op.Max(earlier[0], later[0])
        total = op.Add(upper, op.Log(op.Add(constant(1, dtype), op.Exp(op.Sub(lower, upper)))))
        # Equal infinities: their difference is not a number.
        is_same = op.And(op.Equal(lower, upper), op.IsInf(op.Cast(upper, to=ir.DataType.FLOAT)))
        return [op.Where(is_same, upper, total)]

    (answer,) = accumulate([(x, dtype)], axis, _size(x, axis), rank(x), combine)
    return answer


def running_extreme(comparison: str) -> Callable[..., Any]:
    """cummax with "GreaterOrEqual", cummin with "LessOrEqual": of equals the last is taken, and NaN wins over all."""

    def translate(x: ir.Value, dim: int) -> tuple[ir.Value, ir.Value]:
        if rank(x) == 0:
            return op.Identity(x), constant(0, ir.DataType.INT64)
        dtype = dtype_of(x)
        axis = positive(dim, rank(x))
        places = op.Expand(along(count_up(size_scalar(x, axis)), axis, rank(x)), op.Shape(x))
        compared = _comparable(dtype)
        key = x if compared == dtype else op.Cast(x, to=compared)

        def combine(earlier: Values, later: Values) -> Values:
            takes_later = getattr(op, comparison)(later[0], earlier[0])
            if dtype.is_floating_point():
                takes_later = op.Or(op.IsNaN(later[0]), op.And(op.Not(op.IsNaN(earlier[0])), takes_later))
            return [op.Where(takes_later, new, old) for new, old in zip(later, earlier, strict=True)]

        states = [(key, compared), (places, ir.DataType.INT64)]
        values, indices = accumulate(states, axis, _size(x, axis), rank(x), combine)
        return (values if compared == dtype else op.Cast(values, to=dtype)), indices

    return translate


def _comparable(dtype: ir.DataType) -> ir.DataType:
    if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.INT32):
        return dtype
    return ir.DataType.FLOAT if dtype.is_floating_point() else ir.DataType.INT64


def _size(x: ir.Value, axis: int) -> Size:
    known = static_size(x, axis)
    return size_scalar(x, axis) if known is None else known
