"""aten::roll, also by amounts that are sizes, and on axes without elements.

torch.onnx (to 2.13) takes constant amounts only. An element moves from place i to (i + shift) mod n.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_vector,
    ints,
    positive,
    rank,
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
