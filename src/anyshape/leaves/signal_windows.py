"""Ranges, windows and signals of an open length: `arange` between tensors, `hann_window` and its like, `istft`.

torch turns such a tensor into a Python number, for which a trace has no value, unless it was made of Python numbers. Here the
count is an open size that is computed from the tensors, as torch's kernel computes it. `out=` is given the result, whatever
size it had before.

torch's operators take a plain int, so that an open length would be frozen at the traced one (seen to torch 2.13). A window of
one element is 1, as in torch. Calls with a plain length are left alone.

torch's own operator takes a plain int, so that an open length would be frozen at the traced one (seen to torch 2.13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import SymInt, Tensor

from anyshape.intercept.small_constants import known_number
from anyshape.leaves.define import define

Function = Callable[..., Any]


CUTS_BOUNDS = len(torch.arange(8.5, dtype=torch.int64)) == 8
"""Whether torch cuts floats to whole numbers before it counts the int64 numbers between them: 2.13 does, 2.15 does not."""


def _arange(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    start, end, step = _bounds(args, kwargs)
    if not any(isinstance(bound, Tensor) for bound in (start, end, step)):
        return func(*args, **kwargs)
    out = kwargs.get("out")
    dtype = kwargs.get("dtype") or (out.dtype if out is not None else _usual_dtype(start, end, step))
    device = kwargs.get("device") or (out.device if out is not None else None)
    known = tuple(map(known_number, (start, end, step)))
    if not any(isinstance(bound, Tensor) for bound in known):
        return func(*known, **{**kwargs, "dtype": dtype, "device": device})
    numbers = _count_up(start, end, step, dtype, device)
    return numbers if out is None else out.set_(numbers)


def _bounds(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    names = ("end",) if len(args) == 1 and "end" not in kwargs else ("start", "end", "step")
    given = {"start": 0, "step": 1, **kwargs, **dict(zip(names, args, strict=False))}
    return given["start"], given["end"], given["step"]


def _usual_dtype(*bounds: Any) -> torch.dtype:
    is_float = any(
        bound.is_floating_point() if isinstance(bound, Tensor) else isinstance(bound, (float, torch.SymFloat))
        for bound in bounds
    )
    return torch.get_default_dtype() if is_float else torch.int64


def _count_up(start: Any, end: Any, step: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """torch counts in doubles, except that some versions cut bounds of int64 to whole numbers first."""
    working = torch.float64 if dtype.is_floating_point else torch.int64
    counting = torch.int64 if dtype == torch.int64 and CUTS_BOUNDS else torch.float64
    first, last, each = (_number(bound, counting, device) for bound in (start, end, step))
    count = torch.ceil((last - first).to(torch.float64) / each).to(torch.int64).item()
    torch._check(count >= 0)
    numbers = torch.arange(count, dtype=working, device=device)  # type: ignore[call-overload]
    return (_number(start, working, device) + numbers * _number(step, working, device)).to(dtype)


def _number(bound: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """A bound without axes: a tensor, a size or a number."""
    if isinstance(bound, Tensor):
        return bound.reshape(()).to(device=device, dtype=dtype)
    return (torch.zeros((), dtype=torch.float64, device=device) + bound).to(dtype)


Shape = Callable[[Tensor, Any, Mapping[str, Any]], Tensor]
_GIVEN = ("window_length", "periodic")


def _of_windows() -> dict[Any, Callable[..., Any]]:
    """The window functions, each with its further parameters in their order."""
    return {
        torch.hann_window: partial(_replace, _hann, {}),
        torch.hamming_window: partial(_replace, _hamming, {"alpha": 0.54, "beta": 0.46}),
        torch.blackman_window: partial(_replace, _blackman, {}),
        torch.bartlett_window: partial(_replace, _bartlett, {}),
        torch.kaiser_window: partial(_replace, _kaiser, {"beta": 12.0}),
    }


def _replace(
    shape: Shape,
    further: Mapping[str, float],
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    given = {"periodic": True, **further, **kwargs, **dict(zip((*_GIVEN, *further), args, strict=False))}
    if not isinstance(given["window_length"], SymInt):
        return func(*args, **kwargs)
    length: Any = given["window_length"]
    place = torch.arange(length, device=given.get("device")).to(torch.float64)
    period = torch.zeros((), dtype=torch.float64, device=given.get("device")) + (length - (not given["periodic"]))
    window = shape(place, period, given).masked_fill((torch.zeros_like(place) + length).eq(1), 1.0)
    return window.to(given.get("dtype") or torch.get_default_dtype())


def _hann(place: Tensor, period: Tensor, given: Mapping[str, Any]) -> Tensor:
    return 0.5 - 0.5 * torch.cos(2 * math.pi * place / period)


def _hamming(place: Tensor, period: Tensor, given: Mapping[str, Any]) -> Tensor:
    return given["alpha"] - given["beta"] * torch.cos(2 * math.pi * place / period)


def _blackman(place: Tensor, period: Tensor, given: Mapping[str, Any]) -> Tensor:
    angle = 2 * math.pi * place / period
    return 0.42 - 0.5 * torch.cos(angle) + 0.08 * torch.cos(2 * angle)


def _bartlett(place: Tensor, period: Tensor, given: Mapping[str, Any]) -> Tensor:
    return 1 - (2 * place / period - 1).abs()


def _kaiser(place: Tensor, period: Tensor, given: Mapping[str, Any]) -> Tensor:
    beta = torch.zeros((), dtype=torch.float64, device=place.device) + given["beta"]
    root = (1 - (2 * place / period - 1) ** 2).clamp(min=0).sqrt()
    return torch.i0(beta * root) / torch.i0(beta)


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


def _keep_length_open(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**_USUAL, **kwargs, **dict(zip(_USUAL, args, strict=False))}
    if not isinstance(given["length"], SymInt) or given["return_complex"]:
        return func(*args, **kwargs)
    return istft(*(given[name] for name in _USUAL if name != "return_complex"))


def replacements() -> dict[Any, Callable[..., Any]]:
    return {torch.arange: _arange, **_of_windows(), torch.istft: _keep_length_open, Tensor.istft: _keep_length_open}
