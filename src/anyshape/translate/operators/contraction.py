"""aten::einsum whose ellipsis is summed away: `b...j->b`. The ellipsis is written out as letters.

onnxruntime wants an ellipsis in the output where the inputs have one; torch.onnx (to 2.13) passes the equation on.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import rank


def translate_einsum(equation: str, tensors: Sequence[ir.Value], path: Any = None) -> ir.Value:
    return op.Einsum(*tensors, equation=write_out(equation.replace(" ", ""), [rank(tensor) for tensor in tensors]))


def write_out(equation: str, ranks: Sequence[int]) -> str:
    """The equation without an ellipsis, where its output has none; else as it is."""
    inputs, arrow, output = equation.partition("->")
    if not arrow or "..." not in inputs or "..." in output:
        return equation
    terms = inputs.split(",")
    hidden = [of_rank - len(term.replace("...", "")) for term, of_rank in zip(terms, ranks, strict=True)]
    free = [letter for letter in string.ascii_letters if letter not in equation][: max(hidden)]
    # Axes of an ellipsis are aligned from the right.
    written = [
        term.replace("...", "".join(free[len(free) - count :])) for term, count in zip(terms, hidden, strict=True)
    ]
    return ",".join(written) + "->" + output
