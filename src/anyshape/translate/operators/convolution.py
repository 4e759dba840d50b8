"""Convolutions whose number of groups is a size (modulated convolution), and transposed ones with an open output size.

aten::conv{1,2,3}d, conv_transpose{1,2,3}d and convolution. ONNX wants both numbers as constants; torch.onnx (to 2.13)
gives up. Groups become a matrix product over windows (windows.py); an open output size becomes the longest output, cut.
All else goes to ONNX's own operators.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_vector, ints, rank, size_vector
from anyshape.translate.operators.windows import Geometry, convolve_groups, transpose_groups


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
    answer = op.ConvTranspose(
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
    return answer if is_fixed else _cut(answer, x, weight, geometry)


def _cut(answer: ir.Value, x: ir.Value, weight: ir.Value, geometry: Geometry) -> ir.Value:
    """To (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1."""
    ends = []
    for axis in range(geometry.axes):
        steps = op.Mul(op.Sub(size_vector(x, axis + 2), ints(1)), ints(geometry.stride[axis]))
        reach = op.Mul(op.Sub(size_vector(weight, axis + 2), ints(1)), ints(geometry.dilation[axis]))
        fixed = ints(1 - 2 * geometry.padding[axis])
        ends.append(op.Add(op.Add(steps, reach), op.Add(fixed, as_vector(geometry.output_padding[axis]))))
    axes = range(2, 2 + geometry.axes)
    return op.Slice(answer, ints(*[0] * geometry.axes), op.Concat(*ends, axis=0), ints(*axes))
