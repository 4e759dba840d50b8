"""`torch.istft` to a length that is computed from sizes: `anyshape::istft`.

torch's own operator takes a plain int, so that an open length would be frozen at the traced one (seen to torch 2.13).
"""

from __future__ import annotations

import torch
from torch import Tensor

from anyshape.operators.define import define


def _istft(
    spectrum: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int,
) -> Tensor:
    return torch.istft(spectrum, n_fft, hop_length, win_length, window, center, normalized, onesided, length)


def _istft_shape(spectrum: Tensor, n_fft: int, *options: object) -> Tensor:
    length = options[-1]
    return spectrum.new_empty([*spectrum.shape[:-2], length], dtype=spectrum.dtype.to_real())  # type: ignore[list-item]


istft = define(
    "istft",
    "(Tensor spectrum, int n_fft, int? hop_length, int? win_length, Tensor? window, bool center, bool normalized, "
    "bool? onesided, SymInt length) -> Tensor",
    _istft,
    _istft_shape,
)
