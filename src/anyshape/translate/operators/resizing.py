"""aten::_upsample_nearest_exact{1,2,3}d: output place i reads input place floor((i + 0.5) * scale).

The scale is 1 / scale_factor where a factor is given, else input size / output size, in float32, as torch computes it.
torch.onnx (to 2.13) rounds otherwise where a factor is given.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.values import Size, as_scalar, constant, count_up, rank, size_scalar


def translate_nearest_exact(
    x: ir.Value, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None
) -> ir.Value:
    """The overload `vec`: one of the two is given."""
    axes = range(2, rank(x))
    for axis in axes:
        size = size_scalar(x, axis)
        if output_size is not None:
            wanted = as_scalar(output_size[axis - 2])
            scale = op.Div(op.Cast(size, to=ir.DataType.FLOAT), op.Cast(wanted, to=ir.DataType.FLOAT))
        else:
            assert scale_factors is not None
            factor = scale_factors[axis - 2]
            scaled = op.Mul(op.Cast(size, to=ir.DataType.DOUBLE), constant(factor, ir.DataType.DOUBLE))
            wanted = op.Cast(op.Floor(scaled), to=ir.DataType.INT64)
            scale = constant(float(torch.tensor(1.0 / factor)), ir.DataType.FLOAT)
        read = _read(x, size, wanted, scale, axis)
        read.shape, read.type = x.shape, x.type
        x = read
    return x


def _read(x: ir.Value, size: ir.Value, wanted: ir.Value, scale: ir.Value, axis: int) -> ir.Value:
    middle = op.Add(op.Cast(count_up(wanted), to=ir.DataType.FLOAT), constant(0.5, ir.DataType.FLOAT))
    place = op.Cast(op.Floor(op.Mul(middle, scale)), to=ir.DataType.INT64)
    return op.Gather(x, op.Min(place, op.Sub(size, as_scalar(1))), axis=axis)
