"""aten::_fft_r2c, _fft_c2c and _fft_c2r, at every length; complex numbers are pairs on a last axis of 2.

They run in float64: onnxruntime's DFT in float32 loses four digits where the length is no power of two. torch.onnx (to
2.13) writes float32, and an inverse of half a spectrum that the standard does not have; here the other half is written out.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_scalar, constant, dtype_of, ints, positive, rank

_DOUBLE = ir.DataType.DOUBLE
_NONE, _BY_ROOT, _BY_SIZE = 0, 1, 2


def translate_r2c(x: ir.Value, dim: Sequence[int], normalization: int, onesided: bool) -> ir.Value:
    axes = [positive(axis, rank(x)) for axis in dim]
    pairs = op.Unsqueeze(op.Cast(x, to=_DOUBLE), ints(-1))
    # Half a spectrum on the last axis only, before the others make the values complex.
    pairs = _transform(pairs, axes[-1], normalization, onesided=onesided)
    for axis in reversed(axes[:-1]):
        pairs = _transform(pairs, axis, normalization)
    return op.Cast(pairs, to=dtype_of(x))


def translate_c2c(x: ir.Value, dim: Sequence[int], normalization: int, forward: bool) -> ir.Value:
    pairs = op.Cast(x, to=_DOUBLE)
    for axis in reversed(dim):
        pairs = _transform(pairs, positive(axis, rank(x) - 1), normalization, inverse=not forward)
    return op.Cast(pairs, to=dtype_of(x))


def translate_c2r(x: ir.Value, dim: Sequence[int], normalization: int, last_dim_size: Size) -> ir.Value:
    axes = [positive(axis, rank(x) - 1) for axis in dim]
    pairs = op.Cast(x, to=_DOUBLE)
    for axis in axes[:-1]:
        pairs = _transform(pairs, axis, normalization, inverse=True)
    whole = _write_out(pairs, axes[-1], as_scalar(last_dim_size))
    pairs = _transform(whole, axes[-1], normalization, inverse=True)
    return op.Cast(op.Gather(pairs, as_scalar(0), axis=-1), to=dtype_of(x))


def _transform(
    pairs: ir.Value, axis: int, normalization: int, *, inverse: bool = False, onesided: bool = False
) -> ir.Value:
    # The first axis of a DFT is a batch.
    batched = op.Unsqueeze(pairs, ints(0))
    size = op.Cast(op.Shape(batched, start=axis + 1, end=axis + 2), to=_DOUBLE)
    answer = op.DFT(batched, axis=axis + 1, inverse=int(inverse), onesided=int(onesided))
    if inverse and normalization != _BY_SIZE:  # an inverse DFT of ONNX is divided by the size already
        answer = op.Mul(answer, size if normalization == _NONE else op.Sqrt(size))
    elif not inverse and normalization != _NONE:
        answer = op.Div(answer, size if normalization == _BY_SIZE else op.Sqrt(size))
    return op.Squeeze(answer, ints(0))


def _write_out(half: ir.Value, axis: int, size: ir.Value) -> ir.Value:
    """x0, x1, ... xh  ->  x0, x1, ... xh, conj(x[n - h - 1]), ... conj(x1): the spectrum of real numbers."""
    one = as_scalar(1)
    kept = op.Add(op.Div(size, as_scalar(2)), one)
    mirrored = op.Range(op.Sub(size, kept), as_scalar(0), as_scalar(-1))
    first = op.Gather(half, op.Range(as_scalar(0), kept, one), axis=axis)
    rest = op.Mul(op.Gather(half, mirrored, axis=axis), constant([1, -1], _DOUBLE))
    return op.Concat(first, rest, axis=axis)
