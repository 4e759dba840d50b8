"""aten::istft: each column of the spectrum back to a frame, the frames times the window added where they overlap, divided by
the window's own squares added in the same way.

torch.onnx (to 2.13) takes it apart into writes that onnxruntime does not load.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.fourier import translate_c2r
from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_scalar,
    as_vector,
    constant,
    count_up,
    dtype_of,
    ints,
    rank,
)

_DOUBLE = ir.DataType.DOUBLE
_BY_ROOT, _BY_SIZE = 1, 2


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
    answer = op.Div(*(_cut(value, start, n_fft if center else 0, length) for value in (signal, envelope)))
    if length is not None:
        answer = _fill(answer, length)
    return op.Cast(answer if has_batch else op.Squeeze(answer, ints(0)), to=dtype)


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
