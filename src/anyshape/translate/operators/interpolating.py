"""Images, signals and volumes read at places between their elements: aten::upsample_*, grid_sampler, grid_sampler_2d and _3d.

Linear and cubic, by a factor that is no whole number: torch computes the new size in double precision, and copies along an
axis that keeps its size, whatever the factor; ONNX multiplies in single precision, which is another size at some (1.3 times
90), and always interpolates. So the factor that `Resize` gets is computed from the size. torch.onnx (to 2.13) gives it as it
is. onnxruntime has no `Resize` of doubles.

Nearest: output place i reads input place floor(i * scale), or floor((i + 0.5) * scale) where exact. The scale is
1 / scale_factor where a factor is given, else input size / output size, in float32, as torch computes it. torch's kernel for
small images reads place i where the size is kept, and i // 2 where it is doubled, whatever the factor. torch.onnx (to
2.13) divides by the inverse of the scale, which is another place at some sizes: 21 to 3, for one.

Images at the places of a grid: onnxruntime reads an element of the image for places that are NaN, infinite, or beyond the range
of its integers, and loses the shares of border elements from about 1e7 on. Places outside the image all read alike, so they are
moved near its border first. What torch gives for NaN and infinities follows from the way it weighs neighbours: NaN, but 0 for
the nearest one with zeros around the image. Volumes: ONNX has grid_sampler_3d from opset 20 on; torch.onnx (to 2.13) has none.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    Size,
    along,
    as_scalar,
    as_vector,
    constant,
    count_up,
    dtype_of,
    ints,
    rank,
    shape_of,
    size_scalar,
)

_FLOAT, _DOUBLE, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64
_SMALL = 128  # height and width of a result together, up to which torch (2.13) takes its kernel for small images
WantedSizes = Sequence[Size] | None
Factors = Sequence[float] | None
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_OUTSIDE = 100.0
"""A place outside an image of any size, with all neighbours that a bicubic reading weighs."""


def resized(mode: str) -> Callable[..., Any]:
    """The overloads `vec`, with a size or factors. `mode` is Resize's: linear or cubic."""

    def translate(x: ir.Value, output_size: WantedSizes, align_corners: bool, scale_factors: Factors) -> ir.Value:
        if mode == "linear" and dtype_of(x) == _DOUBLE:
            return _interpolate(x, output_size, align_corners, scale_factors)
        flat = op.Unsqueeze(x, as_vector(2)) if rank(x) == 3 else x  # runtimes are fastest on two axes
        added = rank(x) == 3
        if output_size is not None or align_corners:
            wanted = [as_vector(size) for size in wanted_sizes(x, output_size, scale_factors)]
            sizes = op.Concat(*shape_of(x, 0, 2), *([as_vector(1)] if added else []), *wanted, axis=0)
            result = _resize(flat, None, sizes, mode, align_corners)
        else:
            factors = [exact_factor(x, axis + 2, factor, mode) for axis, factor in enumerate(scale_factors or ())]
            ones = constant([1.0] * (3 if added else 2), _FLOAT)
            result = _resize(flat, op.Concat(ones, *factors, axis=0), None, mode, align_corners)
        return op.Squeeze(result, as_vector(2)) if added else result

    return translate


def _resize(x: ir.Value, factors: Any, sizes: Any, mode: str, align_corners: bool) -> ir.Value:
    places = "align_corners" if align_corners else "half_pixel"
    return op.Resize(
        x, None, factors, sizes, mode=mode, coordinate_transformation_mode=places, cubic_coeff_a=-0.75, antialias=0
    )


def wanted_sizes(x: ir.Value, output_size: WantedSizes, factors: Factors) -> list[Size]:
    if output_size is not None:
        return list(output_size)
    return [_scaled(size_scalar(x, axis + 2), factor) for axis, factor in enumerate(factors or ())]


def _scaled(size: ir.Value, factor: float) -> ir.Value:
    return op.Cast(op.Floor(op.Mul(op.Cast(size, to=_DOUBLE), constant(factor, _DOUBLE))), to=_INT64)


def exact_factor(x: ir.Value, axis: int, factor: float, mode: str) -> ir.Value:
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


def _interpolate(x: ir.Value, output_size: WantedSizes, align_corners: bool, factors: Factors) -> ir.Value:
    """Axis by axis, with torch's own places, in double precision."""
    result, of_rank = x, rank(x)
    for axis, wanted in enumerate(wanted_sizes(x, output_size, factors), start=2):
        size = size_scalar(x, axis)
        place = _places(size, as_scalar(wanted), align_corners, factors[axis - 2] if factors else None)
        first = op.Cast(op.Floor(place), to=_INT64)
        last = op.Sub(size, as_scalar(1))
        share = along(op.Sub(place, op.Cast(first, to=_DOUBLE)), axis, of_rank)
        here = op.Gather(result, op.Min(first, last), axis=axis)
        there = op.Gather(result, op.Min(op.Add(first, as_scalar(1)), last), axis=axis)
        result = op.Add(op.Mul(here, op.Sub(constant(1, _DOUBLE), share)), op.Mul(there, share))
    return result


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


def nearest(shift: float) -> Callable[..., Any]:
    """The overloads `vec`, of which one of the two is given; nearest with a shift of 0, nearest-exact with 1 / 2."""

    def translate(x: ir.Value, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None) -> ir.Value:
        if scale_factors is not None and not shift and all(float(factor).is_integer() for factor in scale_factors):
            return _repeat_elements(x, scale_factors)
        sizes = [size_scalar(x, axis) for axis in range(2, rank(x))]
        all_wanted = [as_scalar(size) for size in wanted_sizes(x, output_size, scale_factors)]
        for axis, (size, wanted) in enumerate(zip(sizes, all_wanted, strict=True), start=2):
            if output_size is not None:
                scale = op.Div(op.Cast(size, to=_FLOAT), op.Cast(wanted, to=_FLOAT))
            else:
                factor = (scale_factors or ())[axis - 2]
                scale = constant(float(torch.tensor(1.0 / factor)), _FLOAT)
                if rank(x) == 4 and not shift:
                    scale = _scale_of_small(scale, factor, size, all_wanted, axis)
            read = _read_along(x, size, wanted, scale, axis, shift)
            read.shape, read.type = ir.Shape([None] * rank(x)), x.type
            x = read
        return x

    return translate


def _scale_of_small(scale: ir.Value, factor: float, size: ir.Value, wanted: list[ir.Value], axis: int) -> ir.Value:
    """The scale; that of a small image whose size the factor keeps or doubles is exact."""
    multiple = int(factor)
    if multiple not in (1, 2) or multiple == factor:
        return scale
    is_small = op.LessOrEqual(op.Add(*wanted), as_scalar(_SMALL))
    is_multiple = op.Equal(wanted[axis - 2], op.Mul(size, as_scalar(multiple)))
    return op.Where(op.And(is_small, is_multiple), constant(1.0 / multiple, _FLOAT), scale)


def _repeat_elements(x: ir.Value, scale_factors: Sequence[float]) -> ir.Value:
    """Whole factors are exact in ONNX too, and runtimes have a kernel for them."""
    factors = constant([1.0, 1.0, *scale_factors], ir.DataType.FLOAT)
    return op.Resize(
        x, None, factors, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


def _read_along(x: ir.Value, size: ir.Value, wanted: ir.Value, scale: ir.Value, axis: int, shift: float) -> ir.Value:
    middle = op.Add(op.Cast(count_up(wanted), to=ir.DataType.FLOAT), constant(shift, ir.DataType.FLOAT))
    place = op.Cast(op.Floor(op.Mul(middle, scale)), to=ir.DataType.INT64)
    return op.Gather(x, op.Min(place, op.Sub(size, as_scalar(1))), axis=axis)


def translate_grid_sampler_2d(
    x: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ir.Value:
    """x [N, C, H, W], grid [N, h, w, 2] with the last axis in the order W, H."""
    dtype = dtype_of(grid)
    is_far_apart = padding_mode == _REFLECTION
    near = grid if is_far_apart else op.Clip(grid, constant(-_OUTSIDE, dtype), constant(_OUTSIDE, dtype))
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    values = op.GridSample(x, near, align_corners=int(align_corners), mode=mode, padding_mode=padding)
    if interpolation_mode != _BICUBIC and padding_mode != _ZEROS:
        return values
    nan_unless_finite = op.Unsqueeze(op.ReduceSum(op.Mul(grid, constant(0, dtype)), ints(-1), keepdims=0), ints(1))
    if interpolation_mode == _NEAREST:
        return op.Where(op.IsNaN(nan_unless_finite), constant(0, dtype), values)
    return op.Add(values, nan_unless_finite)


def translate_grid_sampler_3d(
    x: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ir.Value:
    """x [N, C, D, H, W], grid [N, d, h, w, 3] with the last axis in the order W, H, D."""
    dtype = dtype_of(x)
    if interpolation_mode not in (_BILINEAR, _NEAREST):
        raise NotImplementedError("grid_sampler_3d by another way than bilinear or nearest")
    sizes = [op.Cast(as_scalar(op.Shape(x, start=axis, end=axis + 1)), to=dtype) for axis in (2, 3, 4)]
    along_axes = zip((op.Gather(grid, as_scalar(2 - number), axis=-1) for number in range(3)), sizes, strict=True)
    places = [_place(share, size, padding_mode, align_corners, dtype) for share, size in along_axes]
    flat = op.Reshape(x, op.Concat(op.Shape(x, start=0, end=2), ints(-1), axis=0))
    if interpolation_mode == _NEAREST:
        return _read_corner(flat, [op.Round(place) for place in places], sizes, x, grid, dtype)
    floors = [op.Floor(place) for place in places]
    total = None
    for corner in product((0, 1), repeat=3):
        at = [op.Add(floor, constant(step, dtype)) for floor, step in zip(floors, corner, strict=True)]
        pairs = zip(places, at, strict=True)
        shares = [op.Sub(constant(1, dtype), op.Abs(op.Sub(place, near))) for place, near in pairs]
        weight = op.Unsqueeze(op.Mul(op.Mul(shares[0], shares[1]), shares[2]), ints(1))
        part = op.Mul(_read_corner(flat, at, sizes, x, grid, dtype), weight)
        total = part if total is None else op.Add(total, part)
    assert total is not None
    return total


def _place(share: ir.Value, size: ir.Value, padding_mode: int, align_corners: bool, dtype: ir.DataType) -> ir.Value:
    one, half = constant(1, dtype), constant(0.5, dtype)
    if align_corners:
        place = op.Mul(op.Mul(op.Add(share, one), half), op.Sub(size, one))
    else:
        place = op.Mul(op.Sub(op.Mul(op.Add(share, one), size), one), half)
    if padding_mode == _REFLECTION:
        place = _reflect(place, size, align_corners, dtype)
    if padding_mode in (_BORDER, _REFLECTION):
        place = op.Min(op.Max(place, constant(0, dtype)), op.Sub(size, one))
    return place


def _reflect(place: ir.Value, size: ir.Value, align_corners: bool, dtype: ir.DataType) -> ir.Value:
    """Back and forth between the middles of the first and last element, or between their outer edges."""
    low = constant(0 if align_corners else -0.5, dtype)
    span = op.Sub(size, constant(1, dtype)) if align_corners else size
    safe = op.Max(span, constant(1e-30, dtype))
    away = op.Abs(op.Sub(place, low))
    flips = op.Floor(op.Div(away, safe))
    rest = op.Sub(away, op.Mul(flips, safe))
    is_even = op.Equal(op.Mod(flips, constant(2, dtype), fmod=1), constant(0, dtype))
    return op.Add(op.Where(is_even, rest, op.Sub(span, rest)), low)


def _read_corner(
    flat: ir.Value, at: list[ir.Value], sizes: list[ir.Value], x: ir.Value, grid: ir.Value, dtype: ir.DataType
) -> ir.Value:
    """The elements at whole places [N, C, d, h, w]; 0 outside."""
    zero, one = constant(0, dtype), constant(1, dtype)
    is_inside, number = None, None
    for place, size in zip(at, sizes, strict=True):
        fits = op.And(op.GreaterOrEqual(place, zero), op.Less(place, size))
        is_inside = fits if is_inside is None else op.And(is_inside, fits)
        kept = op.Cast(op.Min(op.Max(place, zero), op.Sub(size, one)), to=_INT64)
        whole = op.Cast(size, to=_INT64)
        number = kept if number is None else op.Add(op.Mul(number, whole), kept)
    batch, channels = op.Shape(x, start=0, end=1), op.Shape(x, start=1, end=2)
    index = op.Unsqueeze(op.Reshape(number, op.Concat(batch, ints(-1), axis=0)), ints(1))
    wide = op.Expand(index, op.Concat(batch, channels, op.Shape(index, start=2), axis=0))
    read = op.GatherElements(flat, wide, axis=2)
    values = op.Reshape(read, op.Concat(batch, channels, op.Shape(grid, start=1, end=4), axis=0))
    return op.Where(op.Unsqueeze(is_inside, ints(1)), values, zero)


def translate_grid_sampler(x: ir.Value, *arguments: Any, **options: Any) -> ir.Value:
    """Both, by the rank."""
    return (translate_grid_sampler_2d if rank(x) == 4 else translate_grid_sampler_3d)(x, *arguments, **options)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **{f"upsample_nearest{axes}d.vec": nearest(0) for axes in (1, 2, 3)},
    **{f"_upsample_nearest_exact{axes}d.vec": nearest(0.5) for axes in (1, 2, 3)},
    "upsample_linear1d.vec": resized("linear"),
    "upsample_bilinear2d.vec": resized("linear"),
    "upsample_trilinear3d.vec": resized("linear"),
    "upsample_bicubic2d.vec": resized("cubic"),
    "grid_sampler": translate_grid_sampler,
    "grid_sampler_2d": translate_grid_sampler_2d,
    "grid_sampler_3d": translate_grid_sampler_3d,
}
