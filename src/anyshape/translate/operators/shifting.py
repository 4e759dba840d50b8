"""Axes moved round and padded.

aten::roll, also by amounts that are sizes, and on axes without elements.

torch.onnx (to 2.13) takes constant amounts only. An element moves from place i to (i + shift) mod n.

aten::pad that wraps round, and padding by a negative number beside a mode: each axis reads the places it shows.

ONNX has "wrap" since opset 19, and onnxruntime (1.31) refuses it without elements, as it does "edge" where a negative
number takes the whole axis. torch.onnx's own translation (to 2.13) is used for all else.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_scalar,
    as_vector,
    constant,
    ints,
    positive,
    rank,
    size_scalar,
    size_vector,
    slice_axis,
    static_size,
)


def translate_roll(x: ir.Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> ir.Value:
    if rank(x) == 0:
        return op.Identity(x)
    if not dims:
        flat = _roll_axis(op.Reshape(x, ints(-1)), shifts[0], 0, None, op.Size(x))
        return op.Reshape(flat, op.Shape(x))
    for shift, dim in zip(shifts, dims, strict=True):
        axis = positive(dim, rank(x))
        x_size = static_size(x, axis)
        rolled = _roll_axis(x, shift, axis, x_size, size_vector(x, axis))
        rolled.shape, rolled.type = x.shape, x.type
        x = rolled
    return x


def _roll_axis(x: ir.Value, shift: Size, axis: int, known_size: int | None, size: ir.Value) -> ir.Value:
    """`x` cut in two, the parts exchanged."""
    if isinstance(shift, int) and known_size is not None:
        cut: Size = -shift % known_size if known_size else 0
    elif isinstance(shift, int) and shift in (1, -1):
        cut = -shift  # a slice that starts at -1 is the last element, whatever the size
    else:
        # Never 0, by which one may not divide.
        divisor = op.Max(as_vector(size), ints(1))
        cut = op.Mod(op.Neg(as_vector(shift)), divisor)
    return op.Concat(slice_axis(x, cut, WHOLE, axis), slice_axis(x, 0, cut, axis), axis=axis)


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "roll": translate_roll,
    "pad": translate_pad,
}
