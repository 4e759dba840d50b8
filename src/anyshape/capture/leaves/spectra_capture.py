"""`torch.istft` to an open length -> an operator of ours that keeps it open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import SymInt, Tensor

from anyshape.operators.spectra import istft

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


def answers() -> dict[Any, Callable[..., Any]]:
    return {torch.istft: _istft, Tensor.istft: _istft}


def _istft(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**_USUAL, **kwargs, **dict(zip(_USUAL, args, strict=False))}
    if not isinstance(given["length"], SymInt) or given["return_complex"]:
        return func(*args, **kwargs)
    return istft(*(given[name] for name in _USUAL if name != "return_complex"))
