"""Convolutions whose number of groups or whose output size is not known before the file runs.

Grouped convolution for any number of groups: one matrix a group, times the windows of that group's channels.

    x [N, G * c, ...], weight [G * o, c, K]  ->  weight [G, o, c * K]  @  windows [N, G, c * K, places]

The transposed kind is a plain one over the input with zeros between its elements and the kernel turned round.

Convolutions whose number of groups is a size (modulated convolution), and transposed ones with an open output size.

aten::conv{1,2,3}d, conv_transpose{1,2,3}d and convolution. ONNX requires both numbers as constants, and the padding;
torch.onnx (to 2.13) gives up. Groups become a matrix product over windows; an open output size becomes the longest output,
cut; an open padding is a Pad before.
All else goes to ONNX's own operators.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
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
    size_vector,
)


@dataclass(frozen=True)
class Geometry:
    """How windows lie on the axes after batch and channels."""

    stride: list[int]
    padding: list[Any]  # an int, or a size, which only a plain convolution takes
    dilation: list[int]
    output_padding: list[Size]

    @classmethod
    def of(
        cls,
        axes: int,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        output_padding: Sequence[Size],
    ) -> Geometry:
        """torch lets one number apply to all axes."""
        plain = [list(sizes) * axes if len(sizes) == 1 else list(sizes) for sizes in (stride, padding, dilation)]
        extra = list(output_padding) * axes if len(output_padding) == 1 else list(output_padding)
        return cls(plain[0], plain[1], plain[2], extra)

    @property
    def axes(self) -> int:
        return len(self.stride)


def convolve_groups(
    x: ir.Value, weight: ir.Value, bias: ir.Value | None, geometry: Geometry, groups: ir.Value
) -> ir.Value:
    return _multiply(_padded(x, geometry), weight, bias, geometry, groups)


def _padded(x: ir.Value, geometry: Geometry) -> ir.Value:
    pads = ints(0, 0, *geometry.padding, 0, 0, *geometry.padding)
    return op.Pad(x, pads, constant(0, dtype_of(x)))


def transpose_groups(
    x: ir.Value, weight: ir.Value, bias: ir.Value | None, geometry: Geometry, groups: ir.Value
) -> ir.Value:
    axes = geometry.axes
    for axis, stride in enumerate(geometry.stride, 2):
        x = _spread(x, stride, axis, 2 + axes, dtype_of(x))
    kernel = op.Shape(weight, start=2)
    margins = op.Mul(op.Sub(kernel, ints(1)), ints(*geometry.dilation))
    begin = op.Sub(margins, ints(*geometry.padding))
    end = op.Add(begin, ints(*geometry.output_padding))
    padded = op.Pad(x, op.Concat(ints(0, 0), begin, ints(0, 0), end, axis=0), constant(0, dtype_of(weight)))
    turned = _turn(weight, kernel, groups, axes)
    return _multiply(padded, turned, bias, replace(geometry, stride=[1] * axes), groups)


def _spread(x: ir.Value, stride: int, axis: int, of_rank: int, dtype: ir.DataType) -> ir.Value:
    """`stride - 1` zeros between the elements of an axis."""
    if stride == 1:
        return x
    pads = [0] * (2 * of_rank + 2)
    pads[of_rank + 1 + axis + 1] = stride - 1
    apart = op.Pad(op.Unsqueeze(x, ints(axis + 1)), ints(*pads), constant(0, dtype))
    size = op.Mul(op.Shape(x, start=axis, end=axis + 1), ints(stride))
    joined = op.Reshape(apart, op.Concat(*shape_of(x, 0, axis), size, *shape_of(x, axis + 1, of_rank), axis=0))
    spread = op.Slice(joined, ints(0), ints(1 - stride), ints(axis))
    spread.type = ir.TensorType(dtype)
    return spread


def _turn(weight: ir.Value, kernel: ir.Value, groups: ir.Value, axes: int) -> ir.Value:
    """[G * c, o, K]  ->  [G * o, c, K reversed]."""
    count = as_vector(groups)
    channels = op.Div(op.Shape(weight, start=0, end=1), op.Max(count, ints(1)))
    outputs = op.Shape(weight, start=1, end=2)
    apart = op.Reshape(weight, op.Concat(count, channels, outputs, kernel, axis=0))
    swapped = op.Transpose(apart, perm=[0, 2, 1, *range(3, 3 + axes)])
    joined = op.Reshape(swapped, op.Concat(op.Mul(count, outputs), channels, kernel, axis=0))
    places = list(range(2, 2 + axes))
    return op.Slice(joined, ints(*[-1] * axes), ints(*[-WHOLE] * axes), ints(*places), ints(*[-1] * axes))


def _multiply(
    padded: ir.Value, weight: ir.Value, bias: ir.Value | None, geometry: Geometry, groups: ir.Value
) -> ir.Value:
    axes = geometry.axes
    count = as_vector(groups)
    outputs = op.Shape(weight, start=0, end=1)
    window = op.ReduceProd(op.Shape(weight, start=1), ints(0), keepdims=1)
    windows, places = _windows(padded, weight, geometry)
    batch = op.Shape(padded, start=0, end=1)
    area = op.ReduceProd(places, ints(0), keepdims=1)
    table = op.Reshape(windows, op.Concat(batch, count, window, area, axis=0))
    matrix = op.Reshape(weight, op.Concat(count, op.Div(outputs, op.Max(count, ints(1))), window, axis=0))
    result = op.Reshape(op.MatMul(matrix, table), op.Concat(batch, outputs, places, axis=0))
    return result if bias is None else op.Add(result, along(bias, 1, 2 + axes))


def _windows(padded: ir.Value, weight: ir.Value, geometry: Geometry) -> tuple[ir.Value, ir.Value]:
    """[N, channels, K of all axes, places of all axes], and the number of places on each axis."""
    counts = []
    one = constant(1, ir.DataType.INT64)
    for number in range(geometry.axes):
        axis = 2 + 2 * number  # each axis before became two
        kernel = as_scalar(op.Shape(weight, start=2 + number, end=3 + number))
        size = as_scalar(op.Shape(padded, start=axis, end=axis + 1))
        step, reach = as_scalar(geometry.stride[number]), as_scalar(geometry.dilation[number])
        room = op.Sub(size, op.Add(op.Mul(reach, op.Sub(kernel, one)), one))
        count = op.Add(op.Div(room, step), one)
        inside = op.Unsqueeze(op.Mul(count_up(kernel), reach), ints(1))
        padded = op.Gather(padded, op.Add(inside, op.Mul(count_up(count), step)), axis=axis)
        counts.append(as_vector(count))
    kernels = [2 + 2 * number for number in range(geometry.axes)]
    ordered = op.Transpose(padded, perm=[0, 1, *kernels, *(axis + 1 for axis in kernels)])
    return ordered, op.Concat(*counts, axis=0)


def translate_convolution(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[Size],
    groups: Size,
) -> ir.Value:
    convolve = _transposed if transposed else _plain
    geometry = Geometry.of(rank(weight) - 2, stride, padding, dilation, output_padding)
    if rank(x) == rank(weight):
        return convolve(x, weight, bias, geometry, groups)
    batched = op.Unsqueeze(x, ints(0))
    batched.type, batched.shape = x.type, ir.Shape([1, *(x.shape or ())])
    return op.Squeeze(convolve(batched, weight, bias, geometry, groups), ints(0))


def translate_conv(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: Size = 1,
) -> ir.Value:
    return translate_convolution(x, weight, bias, stride, padding, dilation, False, (0,), groups)


def translate_conv_transpose(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[Size] = (0,),
    groups: Size = 1,
    dilation: Sequence[int] = (1,),
) -> ir.Value:
    return translate_convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _plain(x: ir.Value, weight: ir.Value, bias: ir.Value | None, geometry: Geometry, groups: Size) -> ir.Value:
    if not isinstance(groups, int):
        return convolve_groups(x, weight, bias, geometry, groups)
    if not all(isinstance(size, int) for size in geometry.padding):
        x, geometry = _padded(x, geometry), replace(geometry, padding=[0] * geometry.axes)
    return op.Conv(
        x,
        weight,
        bias,
        group=groups,
        strides=geometry.stride,
        pads=[*geometry.padding, *geometry.padding],
        dilations=geometry.dilation,
    )


def _transposed(x: ir.Value, weight: ir.Value, bias: ir.Value | None, geometry: Geometry, groups: Size) -> ir.Value:
    if not isinstance(groups, int):
        return transpose_groups(x, weight, bias, geometry, groups)
    extra = geometry.output_padding
    is_fixed = all(isinstance(size, int) for size in extra)
    longest = [max(stride, dilation) - 1 for stride, dilation in zip(geometry.stride, geometry.dilation, strict=True)]
    result = op.ConvTranspose(
        x,
        weight,
        bias,
        group=groups,
        strides=geometry.stride,
        dilations=geometry.dilation,
        pads=[*geometry.padding, *(geometry.padding if is_fixed else [0] * geometry.axes)],
        output_padding=list(extra)
        if is_fixed
        # What the padding at the end would have cut off is there already.
        else [max(0, most - pad) for most, pad in zip(longest, geometry.padding, strict=True)],
    )
    return result if is_fixed else _cut(result, x, weight, geometry)


def _cut(result: ir.Value, x: ir.Value, weight: ir.Value, geometry: Geometry) -> ir.Value:
    """To (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1."""
    ends = []
    for axis in range(geometry.axes):
        steps = op.Mul(op.Sub(size_vector(x, axis + 2), ints(1)), ints(geometry.stride[axis]))
        reach = op.Mul(op.Sub(size_vector(weight, axis + 2), ints(1)), ints(geometry.dilation[axis]))
        fixed = ints(1 - 2 * geometry.padding[axis])
        ends.append(op.Add(op.Add(steps, reach), op.Add(fixed, as_vector(geometry.output_padding[axis]))))
    axes = range(2, 2 + geometry.axes)
    return op.Slice(result, ints(*[0] * geometry.axes), op.Concat(*ends, axis=0), ints(*axes))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "convolution": translate_convolution,
    "conv1d": translate_conv,
    "conv2d": translate_conv,
    "conv3d": translate_conv,
    "conv_transpose1d": translate_conv_transpose,
    "conv_transpose2d.input": translate_conv_transpose,
    "conv_transpose3d.input": translate_conv_transpose,
}
