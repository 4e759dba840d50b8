"""aten::logaddexp, logaddexp2 and log_sigmoid, also of numbers whose powers overflow and of equal infinities; log2 and log10.

torch.onnx (to 2.13) writes log(exp(x) + exp(y)), which is inf from 89 on, and log(sigmoid(x)), which is -inf from -104 on. It
divides a logarithm in float64 by log(2) in float32.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import NARROW, constant, dtype_of


def logarithm(base: int) -> Callable[..., Any]:
    """log2 or log10, of every floating-point dtype; halves are computed in float32, as in torch."""

    def translate(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        wide = ir.DataType.FLOAT if dtype in NARROW else dtype
        answer = op.Div(op.Log(x if dtype == wide else op.Cast(x, to=wide)), constant(math.log(base), wide))
        return answer if dtype == wide else op.Cast(answer, to=dtype)

    return translate


def translate_logaddexp(x: ir.Value, other: ir.Value) -> ir.Value:
    """The greater, and log(1 + exp(-distance))."""
    return _add(x, other, 1.0)


def translate_logaddexp2(x: ir.Value, other: ir.Value) -> ir.Value:
    return _add(x, other, math.log(2))


def _add(x: ir.Value, other: ir.Value, log_base: float) -> ir.Value:
    dtype = dtype_of(x)
    distance = op.Abs(op.Sub(x, other))
    base = constant(log_base, dtype)
    more = op.Div(op.Log(op.Add(constant(1, dtype), op.Exp(op.Neg(op.Mul(distance, base))))), base)
    # Equal infinities: their distance is not a number.
    return op.Where(
        op.Equal(x, other), op.Add(x, constant(math.log(2) / log_base, dtype)), op.Add(op.Max(x, other), more)
    )


def translate_log_sigmoid(x: ir.Value) -> ir.Value:
    """min(x, 0) - log(1 + exp(-|x|)), in float64, where 1 + exp(-20) is not 1."""
    wide = op.Cast(x, to=ir.DataType.DOUBLE)
    zero, one = constant(0, ir.DataType.DOUBLE), constant(1, ir.DataType.DOUBLE)
    rest = op.Log(op.Add(one, op.Exp(op.Neg(op.Abs(wide)))))
    return op.Cast(op.Sub(op.Min(wide, zero), rest), to=dtype_of(x))


def translate_log_sigmoid_forward(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Beside it a buffer, which on the CPU is not read by what a module may call."""
    return translate_log_sigmoid(x), op.Exp(op.Neg(op.Abs(x)))
