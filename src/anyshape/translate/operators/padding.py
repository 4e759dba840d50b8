"""aten::pad that wraps round, and padding by a negative number beside a mode: each axis reads the places it shows.

ONNX has "wrap" since opset 19, and onnxruntime (1.31) refuses it without elements, as it does "edge" where a negative
number takes the whole axis. torch.onnx's own translation (to 2.13) is used for all else.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_scalar, constant, rank, size_scalar


def translate_pad(x: ir.Value, pad: Sequence[Size], mode: str = "constant", value: float | None = None) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops.nn import aten_pad

    has_negative = any(isinstance(size, int) and size < 0 for size in pad)
    if mode == "constant" or (mode != "circular" and not has_negative):
        return aten_pad(x, pad, mode, value)
    for number in range(len(pad) // 2):
        axis = rank(x) - 1 - number
        before, after = pad[2 * number], pad[2 * number + 1]
        if before == 0 and after == 0:
            continue
        read = op.Gather(x, _places(size_scalar(x, axis), before, after, mode), axis=axis)
        # Other axes are as they were; this one is not read again.
        read.type, read.shape = x.type, x.shape
        x = read
    return x


def _places(size: ir.Value, before: Size, after: Size, mode: str) -> ir.Value:
    one = constant(1, ir.DataType.INT64)
    shown = op.Range(op.Neg(as_scalar(before)), op.Add(size, as_scalar(after)), one)
    if mode == "circular":
        return op.Mod(shown, size)
    last = op.Sub(size, one)
    if mode == "replicate":
        return op.Max(op.Min(shown, last), constant(0, ir.DataType.INT64))
    return op.Sub(last, op.Abs(op.Sub(last, op.Abs(shown))))
