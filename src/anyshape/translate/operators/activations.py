"""aten::gelu and aten::rsqrt in the forms that onnxruntime fuses when it loads a file.

torch.onnx (to 2.13) writes x * (0.5 * (1 + erf(x / sqrt 2))) and Reciprocal(Sqrt(x)), which stay five nodes, and keep a root
mean square norm from becoming one.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import constant, dtype_of


def translate_gelu(x: ir.Value, *, approximate: str = "none") -> ir.Value:
    """(x * 0.5) * (1 + erf(x / sqrt 2)), or with tanh in place of erf."""
    dtype = dtype_of(x)
    if approximate == "tanh":
        cubed = op.Mul(constant(0.044715, dtype), op.Pow(x, constant(3, dtype)))
        inner = op.Tanh(op.Mul(constant(math.sqrt(2 / math.pi), dtype), op.Add(x, cubed)))
    else:
        inner = op.Erf(op.Div(x, constant(math.sqrt(2), dtype)))
    return op.Mul(op.Mul(x, constant(0.5, dtype)), op.Add(inner, constant(1, dtype)))


def translate_rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return op.Div(constant(1, dtype_of(x)), op.Sqrt(x))
