"""`F.interpolate(..., antialias=True)`: each output element is the mean of all input elements that it covers, weighed.

torch.onnx (to 2.13) drops a factor that is given: it makes the scale from the sizes. ONNX's `Resize` has other places than
torch where corners are aligned, and onnxruntime none of doubles: there the weights are a matrix for each axis. An axis that
keeps its size is copied, whatever the factor.

torch (2.13) itself, on an image whose channels are not the last axis in memory, gives the first row in place of each row where
the new width is 1 and the height changes. The file does so, too, where this torch does.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F
from onnxscript import opset18 as op

from anyshape.translate.operators.interpolating import Factors, WantedSizes, exact_factor, wanted_sizes
from anyshape.translate.operators.size_values import (
    Size,
    along,
    as_scalar,
    constant,
    count_up,
    dtype_of,
    ints,
    size_scalar,
    size_vector,
    slice_axis,
)

_FLOAT = ir.DataType.FLOAT
_CUBIC = -0.5
"""The coefficient of torch's cubic filter with antialias; it is -0.75 without."""
_HEIGHT, _WIDTH = 2, 3


def by_vectors(mode: str) -> Callable[..., Any]:
    """The overloads `vec`, with a size or factors. `mode` is Resize's: linear or cubic."""

    def translate(x: ir.Value, output_size: WantedSizes, align_corners: bool, scale_factors: Factors) -> ir.Value:
        if dtype_of(x) == _FLOAT and not align_corners:
            result = _resize_both(x, output_size, scale_factors, mode)
        else:
            factors = scale_factors or (None, None)
            result = _by_weights(x, wanted_sizes(x, output_size, scale_factors), align_corners, factors, mode)
        return _as_torch(x, result, output_size[1] if output_size is not None else 1)

    return translate


def by_axes(mode: str) -> Callable[..., Any]:
    """The overloads without a name: sizes, and a factor for each axis or none."""

    def translate(
        x: ir.Value,
        output_size: Sequence[Size],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> ir.Value:
        if dtype_of(x) == _FLOAT and not align_corners and scales_h is None and scales_w is None:
            result = _resize_both(x, output_size, None, mode)
        else:
            result = _by_weights(x, output_size, align_corners, (scales_h, scales_w), mode)
        return _as_torch(x, result, output_size[1])

    return translate


def _by_weights(
    x: ir.Value, sizes: Sequence[Size], align_corners: bool, factors: Sequence[float | None], mode: str
) -> ir.Value:
    height, width = (
        _weights(x, axis, sizes[axis - 2], (None if align_corners else factors[axis - 2], align_corners, mode))
        for axis in (_HEIGHT, _WIDTH)
    )
    return op.MatMul(op.Transpose(height), op.MatMul(x, width))


def _as_torch(x: ir.Value, result: ir.Value, width: Size) -> ir.Value:
    """The result; its first row everywhere, where this torch takes a height to one column."""
    if (isinstance(width, int) and width > 1) or not _repeats_the_first_row():
        return result
    is_column = op.Equal(op.Shape(result, start=_WIDTH), ints(1))
    is_kept = op.Equal(op.Shape(result, start=_HEIGHT, end=_WIDTH), size_vector(x, _HEIGHT))
    return op.Where(op.And(is_column, op.Not(is_kept)), slice_axis(result, 0, 1, _HEIGHT), result)


@cache
def _repeats_the_first_row() -> bool:
    column = torch.tensor([0.0, 1.0, 2.0, 3.0]).reshape(1, 1, 4, 1)
    halved = F.interpolate(column, size=(2, 1), mode="bilinear", antialias=True)
    return bool(halved[0, 0, 0, 0] == halved[0, 0, 1, 0])


def _resize_both(x: ir.Value, output_size: WantedSizes, factors: Factors, mode: str) -> ir.Value:
    if output_size is not None:
        return _resize(x, None, op.Concat(op.Shape(x, start=0, end=2), ints(*output_size), axis=0), mode)
    assert factors is not None
    kept = [exact_factor(x, axis, factors[axis - 2], "linear") for axis in (_HEIGHT, _WIDTH)]
    return _resize(x, op.Concat(constant([1.0, 1.0], _FLOAT), *kept, axis=0), None, mode)


def _resize(x: ir.Value, factors: Any, sizes: Any, mode: str) -> ir.Value:
    return op.Resize(
        x,
        None,
        factors,
        sizes,
        mode=mode,
        coordinate_transformation_mode="half_pixel",
        cubic_coeff_a=_CUBIC,
        antialias=1,
        exclude_outside=1,
    )


def _weights(x: ir.Value, axis: int, wanted: Size, how: tuple[float | None, bool, str]) -> ir.Value:
    """[old size, new size]: how much of each input element is in each output element. Each column has the sum 1, or 0."""
    factor, align_corners, mode = how
    dtype, size = dtype_of(x), size_scalar(x, axis)
    one, half, zero = (constant(number, dtype) for number in (1, 0.5, 0))
    old, new = op.Cast(size, to=dtype), op.Cast(as_scalar(wanted), to=dtype)
    if align_corners:
        above = op.Max(op.Sub(new, one), one)
        scale = op.Where(op.Greater(new, one), op.Div(op.Sub(old, one), above), zero)
    else:
        scale = op.Div(old, new) if factor is None else constant(1.0 / factor, dtype)
    stretch = op.Max(scale, one)
    middle = along(op.Mul(scale, op.Add(op.Cast(count_up(wanted), to=dtype), half)), 1, 2)
    reach = op.Mul(constant(1 if mode == "linear" else 2, dtype), stretch)
    place = along(op.Cast(count_up(size), to=dtype), 0, 2)
    first = op.Max(op.Floor(op.Add(op.Sub(middle, reach), half)), zero)
    end = op.Min(op.Floor(op.Add(op.Add(middle, reach), half)), old)
    is_read = op.And(op.GreaterOrEqual(place, first), op.Less(place, end))
    distance = op.Abs(op.Div(op.Add(op.Sub(place, middle), half), stretch))
    share = op.Where(is_read, _FILTERS[mode](distance, dtype), zero)
    total = op.ReduceSum(share, ints(0), keepdims=1)
    weights = op.Div(share, op.Where(op.Equal(total, zero), one, total))
    same = op.Equal(place, along(op.Cast(count_up(wanted), to=dtype), 1, 2))
    return op.Where(op.Equal(size, as_scalar(wanted)), op.Cast(same, to=dtype), weights)


def _triangle(distance: ir.Value, dtype: ir.DataType) -> ir.Value:
    return op.Max(op.Sub(constant(1, dtype), distance), constant(0, dtype))


def _cubic(distance: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Two cubic polynomials: below 1, and between 1 and 2."""
    a = _CUBIC

    def polynomial(*coefficients: float) -> ir.Value:
        value = constant(coefficients[0], dtype)
        for coefficient in coefficients[1:]:
            value = op.Add(op.Mul(value, distance), constant(coefficient, dtype))
        return value

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    outside = op.Where(op.Less(distance, constant(2, dtype)), far, constant(0, dtype))
    return op.Where(op.Less(distance, constant(1, dtype)), near, outside)


_FILTERS: dict[str, Callable[[ir.Value, ir.DataType], ir.Value]] = {"linear": _triangle, "cubic": _cubic}

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "_upsample_bilinear2d_aa.vec": by_vectors("linear"),
    "_upsample_bicubic2d_aa.vec": by_vectors("cubic"),
    "_upsample_bilinear2d_aa": by_axes("linear"),
    "_upsample_bicubic2d_aa": by_axes("cubic"),
}
