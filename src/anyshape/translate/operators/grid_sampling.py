"""Images and volumes read at the places of a grid: aten::grid_sampler, grid_sampler_2d and grid_sampler_3d.

Images: onnxruntime reads an element of the image for places that are NaN, infinite, or beyond the range of its integers,
and loses the shares of border elements from about 1e7 on. Places outside the image all read alike, so they are moved near
its border first. What torch gives for NaN and infinities follows from the way it weighs neighbours: NaN, but 0 for the
nearest one with zeros around the image.

    place  ->  place within -100..100 (not with reflection, where the distance counts)  ->  GridSample  ->  NaN, or 0

Volumes: ONNX has grid_sampler_3d from opset 20 on; torch.onnx (to 2.13) has none.

    place in -1..1  ->  element number by `align_corners`  ->  moved inside by the padding  ->  8 neighbours, weighed
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import as_scalar, constant, dtype_of, ints, rank

_INT64 = ir.DataType.INT64

_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_OUTSIDE = 100.0
"""A place outside an image of any size, with all neighbours that a bicubic reading weighs."""


def translate_grid_sampler_2d(
    x: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ir.Value:
    """x [N, C, H, W], grid [N, h, w, 2] with the last axis in the order W, H."""
    dtype = dtype_of(grid)
    is_far_alike = padding_mode != _REFLECTION
    near = op.Clip(grid, constant(-_OUTSIDE, dtype), constant(_OUTSIDE, dtype)) if is_far_alike else grid
    values = op.GridSample(
        x,
        near,
        align_corners=int(align_corners),
        mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
    )
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
    places = [
        _place(op.Gather(grid, as_scalar(2 - number), axis=-1), size, padding_mode, align_corners, dtype)
        for number, size in enumerate(sizes)
    ]
    flat = op.Reshape(x, op.Concat(op.Shape(x, start=0, end=2), ints(-1), axis=0))
    if interpolation_mode == _NEAREST:
        return _read_corner(flat, [op.Round(place) for place in places], sizes, x, grid, dtype)
    floors = [op.Floor(place) for place in places]
    total = None
    for corner in product((0, 1), repeat=3):
        at = [op.Add(floor, constant(step, dtype)) for floor, step in zip(floors, corner, strict=True)]
        shares = [
            op.Sub(constant(1, dtype), op.Abs(op.Sub(place, near))) for place, near in zip(places, at, strict=True)
        ]
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
    values = op.Reshape(
        op.GatherElements(flat, wide, axis=2), op.Concat(batch, channels, op.Shape(grid, start=1, end=4), axis=0)
    )
    return op.Where(op.Unsqueeze(is_inside, ints(1)), values, zero)


def translate_grid_sampler(
    x: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ir.Value:
    """Both, by the rank."""
    translate = translate_grid_sampler_2d if rank(x) == 4 else translate_grid_sampler_3d
    return translate(x, grid, interpolation_mode, padding_mode, align_corners)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "grid_sampler": translate_grid_sampler,
    "grid_sampler_2d": translate_grid_sampler_2d,
    "grid_sampler_3d": translate_grid_sampler_3d,
}
