"""aten::upsample_nearest{1,2,3}d and _upsample_nearest_exact{1,2,3}d: output place i reads input place floor(i * scale), or
floor((i + 0.5) * scale).

The scale is 1 / scale_factor where a factor is given, else input size / output size, in float32, as torch computes it.
torch.onnx (to 2.13) divides by the inverse of that, which is another place at some sizes: 21 to 3, for one.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_scalar, constant, count_up, rank, size_scalar


def nearest(shift: float) -> Callable[..., Any]:
    """The overloads `vec`, of which one of the two is given; nearest with a shift of 0, nearest-exact with 1 / 2."""

    def translate(x: ir.Value, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None) -> ir.Value:
        if scale_factors is not None and not shift and all(float(factor).is_integer() for factor in scale_factors):
            return _repeat_elements(x, scale_factors)
        for axis in range(2, rank(x)):
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
            read = _read(x, size, wanted, scale, axis, shift)
            read.shape, read.type = ir.Shape([None] * rank(x)), x.type
            x = read
        return x

    return translate


def _repeat_elements(x: ir.Value, scale_factors: Sequence[float]) -> ir.Value:
    """Whole factors are exact in ONNX too, and runtimes have a kernel for them."""
    factors = constant([1.0, 1.0, *scale_factors], ir.DataType.FLOAT)
    return op.Resize(
        x, None, factors, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


def _read(x: ir.Value, size: ir.Value, wanted: ir.Value, scale: ir.Value, axis: int, shift: float) -> ir.Value:
    middle = op.Add(op.Cast(count_up(wanted), to=ir.DataType.FLOAT), constant(shift, ir.DataType.FLOAT))
    place = op.Cast(op.Floor(op.Mul(middle, scale)), to=ir.DataType.INT64)
    return op.Gather(x, op.Min(place, op.Sub(size, as_scalar(1))), axis=axis)
