"""Fourier transforms, and the inverse of a short-time one.

aten::_fft_r2c, _fft_c2c and _fft_c2r, at every length; complex numbers are pairs on a last axis of 2.

They run in float64: onnxruntime's DFT in float32 loses four digits where the length is no power of two. torch.onnx (to
2.13) writes float32, and an inverse of half a spectrum that the standard does not have; here the other half is written out.

aten::istft: each column of the spectrum back to a frame, the frames times the window added where they overlap, divided by
the window's own squares added in the same way.

torch.onnx (to 2.13) takes it apart into writes that onnxruntime does not load.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_scalar,
    as_vector,
    constant,
    count_up,
    dtype_of,
    ints,
    positive,
    rank,
)

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
    result = op.DFT(batched, axis=axis + 1, inverse=int(inverse), onesided=int(onesided))
    if inverse and normalization != _BY_SIZE:  # an inverse DFT of ONNX is divided by the size already
        result = op.Mul(result, size if normalization == _NONE else op.Sqrt(size))
    elif not inverse and normalization != _NONE:
        result = op.Div(result, size if normalization == _BY_SIZE else op.Sqrt(size))
    return op.Squeeze(result, ints(0))


def _write_out(half: ir.Value, axis: int, size: ir.Value) -> ir.Value:
    """x0, x1, ... xh  ->  x0, x1, ... xh, conj(x[n - h - 1]), ... conj(x1): the spectrum of real numbers."""
    one = as_scalar(1)
    kept = op.Add(op.Div(size, as_scalar(2)), one)
    mirrored = op.Range(op.Sub(size, kept), as_scalar(0), as_scalar(-1))
    first = op.Gather(half, op.Range(as_scalar(0), kept, one), axis=axis)
    rest = op.Mul(op.Gather(half, mirrored, axis=axis), constant([1, -1], _DOUBLE))
    return op.Concat(first, rest, axis=axis)


def translate_istft(
    spectrum: ir.Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: ir.Value | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Size | None = None,
    return_complex: bool = False,
) -> ir.Value:
    """Of [batch, frequencies, frames] or without a batch, in pairs."""
    if return_complex:
        raise NotImplementedError("istft with a complex answer")
    hop, dtype = hop_length or n_fft // 4, dtype_of(spectrum)
    has_batch = rank(spectrum) == 4
    batched = spectrum if has_batch else op.Unsqueeze(spectrum, ints(0))
    columns = op.Cast(op.Transpose(batched, perm=[0, 2, 1, 3]), to=_DOUBLE)
    columns.type, columns.shape = ir.TensorType(_DOUBLE), ir.Shape([None, None, None, 2])
    # Of a whole spectrum torch reads the first half too.
    frames = translate_c2r(columns, [2], _BY_ROOT if normalized else _BY_SIZE, n_fft)
    shaped = _window(window, win_length or n_fft, n_fft)
    count = as_scalar(op.Shape(columns, start=1, end=2))
    total = op.Add(as_vector(n_fft), op.Mul(as_vector(hop), op.Sub(as_vector(count), ints(1))))
    starts = op.Unsqueeze(op.Mul(count_up(count), as_scalar(hop)), ints(1))
    places = op.Reshape(op.Add(starts, count_up(n_fft)), ints(1, -1))
    signal = _overlap(op.Mul(frames, shaped), places, total)
    squares = op.Expand(op.Mul(shaped, shaped), op.Concat(ints(1), as_vector(count), ints(n_fft), axis=0))
    envelope = _overlap(squares, places, total)
    start = n_fft // 2 if center else 0
    result = op.Div(*(_cut(value, start, n_fft if center else 0, length) for value in (signal, envelope)))
    if length is not None:
        result = _fill(result, length)
    return op.Cast(result if has_batch else op.Squeeze(result, ints(0)), to=dtype)


def _window(window: ir.Value | None, win_length: int, n_fft: int) -> ir.Value:
    """In the middle of n_fft places; ones where none is given."""
    if window is None:
        shaped = op.Expand(constant(1, _DOUBLE), ints(win_length))
    else:
        shaped = op.Cast(window, to=_DOUBLE)
    left = (n_fft - win_length) // 2
    return op.Pad(shaped, ints(left, n_fft - win_length - left), constant(0, _DOUBLE)) if win_length < n_fft else shaped


def _overlap(frames: ir.Value, places: ir.Value, total: ir.Value) -> ir.Value:
    batch = op.Shape(frames, start=0, end=1)
    flat = op.Reshape(frames, op.Concat(batch, ints(-1), axis=0), allowzero=0)
    zeros = op.Expand(constant(0, _DOUBLE), op.Concat(batch, total, axis=0))
    return op.ScatterElements(zeros, op.Expand(places, op.Shape(flat)), flat, axis=1, reduction="add")


def _cut(signal: ir.Value, start: int, margins: int, length: Size | None) -> ir.Value:
    if length is not None:
        return op.Slice(signal, ints(start), op.Add(as_vector(length), ints(start)), ints(1))
    return op.Slice(signal, ints(start), ints(-(margins // 2) if margins else WHOLE), ints(1))


def _fill(signal: ir.Value, length: Size) -> ir.Value:
    """Zeros after the end, where more was asked for than the frames hold."""
    missing = op.Max(op.Sub(as_vector(length), op.Shape(signal, start=1)), ints(0))
    return op.Pad(signal, op.Concat(ints(0, 0, 0), missing, axis=0), constant(0, _DOUBLE))


TRANSLATIONS: dict[str, Callable[..., Any]] = {"_fft_r2c": translate_r2c}


COMPLEX_TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "istft": translate_istft,
    "_fft_c2c": translate_c2c,
    "_fft_c2r": translate_c2r,
}
