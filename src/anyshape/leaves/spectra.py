"""`torch.istft` to a length that is computed from sizes -> `anyshape::istft`, which keeps the length open.

torch's own operator takes a plain int, so that an open length would be frozen at the traced one (seen to torch 2.13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import SymInt, Tensor

from anyshape.leaves.define import define


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

Function = Callable[..., Any]

_USUAL: dict[str, Any] = {
    "input": None,
    "n_fft": None,
    "hop_length": None,
    "win_length": None,
    "window": None,
    "center": True,
    "normalized": False,
    "onesided": None,
    "length": None,
    "return_complex": False,
}


def replacements() -> dict[Any, Callable[..., Any]]:
    return {torch.istft: _keep_length_open, Tensor.istft: _keep_length_open}


def _keep_length_open(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**_USUAL, **kwargs, **dict(zip(_USUAL, args, strict=False))}
    if not isinstance(given["length"], SymInt) or given["return_complex"]:
        return func(*args, **kwargs)
    return istft(*(given[name] for name in _USUAL if name != "return_complex"))
