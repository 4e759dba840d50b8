"""Activations that ONNX has in a form that loses digits, or not as torch computes them: elu, celu, selu, gelu, log_sigmoid.

onnxruntime's Elu, Celu and Selu are exp(x) - 1 below 0, which is 0 from -3e-8 on; torch takes expm1 (seen to 1.31).
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.elementwise import at_least_float32, log1p_in
from anyshape.translate.operators.size_values import constant, dtype_of

DOUBLE = ir.DataType.DOUBLE
_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def translate_elu(x: ir.Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> ir.Value:
    """scale * x above 0, and alpha * scale * expm1(input_scale * x) below; expm1(x) is 2 t / (1 - t) with t = tanh(x / 2)."""
    wide, dtype = at_least_float32(x)
    tangent = op.Tanh(op.Mul(wide, constant(input_scale / 2, dtype)))
    quotient = op.Div(tangent, op.Sub(constant(1, dtype), tangent))
    above = wide if scale == 1 else op.Mul(wide, constant(scale, dtype))
    below = op.Mul(quotient, constant(2 * alpha * scale, dtype))
    chosen = op.Where(op.Greater(wide, constant(0, dtype)), above, below)
    return chosen if dtype == dtype_of(x) else op.CastLike(chosen, x)


def translate_celu(x: ir.Value, alpha: float = 1.0) -> ir.Value:
    return translate_elu(x, alpha, 1.0, 1 / alpha)


def translate_selu(x: ir.Value) -> ir.Value:
    return translate_elu(x, *_SELU)


def translate_log_sigmoid(x: ir.Value) -> ir.Value:
    """min(x, 0) - log1p(exp(-|x|)), in float64."""
    wide = op.Cast(x, to=DOUBLE)
    rest = log1p_in(op.Exp(op.Neg(op.Abs(wide))), DOUBLE)
    return op.Cast(op.Sub(op.Min(wide, constant(0, DOUBLE)), rest), to=dtype_of(x))


def translate_log_sigmoid_forward(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Beside it a buffer, which on the CPU is not read by what a module may call."""
    return translate_log_sigmoid(x), op.Exp(op.Neg(op.Abs(x)))


def translate_gelu(x: ir.Value, *, approximate: str = "none") -> ir.Value:
    """(x * 0.5) * (1 + erf(x / sqrt 2)), or with tanh in place of erf."""
    dtype = dtype_of(x)
    if approximate == "tanh":
        cubed = op.Mul(constant(0.044715, dtype), op.Pow(x, constant(3, dtype)))
        inner = op.Tanh(op.Mul(constant(math.sqrt(2 / math.pi), dtype), op.Add(x, cubed)))
    else:
        inner = op.Erf(op.Div(x, constant(math.sqrt(2), dtype)))
    return op.Mul(op.Mul(x, constant(0.5, dtype)), op.Add(inner, constant(1, dtype)))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "elu": translate_elu,
    "celu": translate_celu,
    "selu": translate_selu,
    "gelu": translate_gelu,
    "log_sigmoid": translate_log_sigmoid,
    "log_sigmoid_forward": translate_log_sigmoid_forward,
}
