"""aten::upsample_linear1d, bilinear2d, trilinear3d and bicubic2d by a factor that is no whole number.

torch computes the new size in double precision, and copies along an axis that keeps its size, whatever the factor; ONNX
multiplies in single precision, which is another size at some (1.3 times 90), and always interpolates. So the factor that
`Resize` gets is computed from the size. torch.onnx (to 2.13) gives it as it is. onnxruntime has no `Resize` of doubles.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    Size,
    along,
    as_scalar,
    as_vector,
    constant,
    count_up,
    dtype_of,
    rank,
    shape_of,
    size_scalar,
)

_FLOAT, _DOUBLE, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64
Sizes = Sequence[Size] | None
Factors = Sequence[float] | None


def resized(mode: str) -> Callable[..., Any]:
    """The overloads `vec`, with a size or factors. `mode` is Resize's: linear or cubic."""

    def translate(x: ir.Value, output_size: Sizes, align_corners: bool, scale_factors: Factors) -> ir.Value:
        if mode == "linear" and dtype_of(x) == _DOUBLE:
            return _interpolate(x, output_size, align_corners, scale_factors)
        flat = op.Unsqueeze(x, as_vector(2)) if rank(x) == 3 else x  # runtimes are fastest on two axes
        added = rank(x) == 3
        if output_size is not None or align_corners:
            wanted = [as_vector(size) for size in _wanted(x, output_size, scale_factors)]
            sizes = op.Concat(*shape_of(x, 0, 2), *([as_vector(1)] if added else []), *wanted, axis=0)
            answer = _resize(flat, None, sizes, mode, align_corners)
        else:
            factors = [_factor(x, axis + 2, factor, mode) for axis, factor in enumerate(scale_factors or ())]
            ones = constant([1.0] * (3 if added else 2), _FLOAT)
            answer = _resize(flat, op.Concat(ones, *factors, axis=0), None, mode, align_corners)
        return op.Squeeze(answer, as_vector(2)) if added else answer

    return translate


def _resize(x: ir.Value, factors: Any, sizes: Any, mode: str, align_corners: bool) -> ir.Value:
    places = "align_corners" if align_corners else "half_pixel"
    return op.Resize(
        x, None, factors, sizes, mode=mode, coordinate_transformation_mode=places, cubic_coeff_a=-0.75, antialias=0
    )


def _wanted(x: ir.Value, output_size: Sizes, factors: Factors) -> list[Size]:
    if output_size is not None:
        return list(output_size)
    return [_scaled(size_scalar(x, axis + 2), factor) for axis, factor in enumerate(factors or ())]


def _scaled(size: ir.Value, factor: float) -> ir.Value:
    return op.Cast(op.Floor(op.Mul(op.Cast(size, to=_DOUBLE), constant(factor, _DOUBLE))), to=_INT64)


def _factor(x: ir.Value, axis: int, factor: float, mode: str) -> ir.Value:
    """float32[1]: the factor with which ONNX comes to the same size as torch."""
    single = float(np.float32(factor))
    may_keep = mode == "linear" and 1 < factor < 2
    if single == factor and not may_keep:
        return constant([single], _FLOAT)
    size = size_scalar(x, axis)
    wanted = _scaled(size, factor)
    given = op.Cast(op.Floor(op.Mul(op.Cast(size, to=_FLOAT), constant(single, _FLOAT))), to=_INT64)
    # One step up is above the factor; down, a product may still round up to the next whole number after one.
    mended = op.Where(op.Less(wanted, given), _step(single, -2), constant(single, _FLOAT))
    mended = op.Where(op.Greater(wanted, given), _step(single, 1), mended)
    kept = op.Where(op.Equal(wanted, size), constant(1.0, _FLOAT), mended) if may_keep else mended
    return op.Reshape(kept, as_vector(1))


def _step(number: float, steps: int) -> ir.Value:
    """That many numbers of single precision further."""
    towards = np.float32(np.inf if steps > 0 else -np.inf)
    for _ in range(abs(steps)):
        number = float(np.nextafter(np.float32(number), towards))
    return constant(number, _FLOAT)


def _interpolate(x: ir.Value, output_size: Sizes, align_corners: bool, factors: Factors) -> ir.Value:
    """Axis by axis, with torch's own places, in double precision."""
    answer, of_rank = x, rank(x)
    for axis, wanted in enumerate(_wanted(x, output_size, factors), start=2):
        size = size_scalar(x, axis)
        place = _places(size, as_scalar(wanted), align_corners, factors[axis - 2] if factors else None)
        first = op.Cast(op.Floor(place), to=_INT64)
        last = op.Sub(size, as_scalar(1))
        share = along(op.Sub(place, op.Cast(first, to=_DOUBLE)), axis, of_rank)
        here = op.Gather(answer, op.Min(first, last), axis=axis)
        there = op.Gather(answer, op.Min(op.Add(first, as_scalar(1)), last), axis=axis)
        answer = op.Add(op.Mul(here, op.Sub(constant(1, _DOUBLE), share)), op.Mul(there, share))
    return answer


def _places(size: ir.Value, wanted: ir.Value, align_corners: bool, factor: float | None) -> ir.Value:
    """Where each output element lies in the input; itself, where the size is kept."""
    number, old, new = (op.Cast(value, to=_DOUBLE) for value in (count_up(wanted), size, wanted))
    one, half, zero = (constant(value, _DOUBLE) for value in (1, 0.5, 0))
    if align_corners:
        place = op.Mul(number, op.Div(op.Sub(old, one), op.Max(op.Sub(new, one), one)))
    else:
        step = constant(1.0 / factor, _DOUBLE) if factor else op.Div(old, new)
        place = op.Max(op.Sub(op.Mul(step, op.Add(number, half)), half), zero)
    return op.Where(op.Equal(size, wanted), number, place)
