"""Functions that compute with a length as a plain Python number in torch, which freezes it: here the length stays open.

These are `arange`, `hann_window` and its like, `istft`, `interpolate` and `cross_entropy` (seen to torch 2.13).

`arange` between tensors: torch turns such a tensor into a Python number, for which a trace has no value, unless it was made of
Python numbers. Here the count is an open size that is computed from the tensors, as torch's kernel computes it. `out=` is
given the result, whatever size it had before.

`hann_window` and its like, and `istft`, take a plain int in torch. A window of one element is 1, as in torch.

    F.interpolate(x, scale_factor=(h / 14, w / 14), mode="bicubic")
    F.cross_entropy(x, shares)  ->  -(log_softmax(x) * shares * weight).sum() / number of samples

`interpolate`: torch.export takes factors that are computed from sizes at the traced sizes. Here they stay open: the size is
computed from them, and the rest is torch's own decomposition, which takes both.

`cross_entropy`: where the targets are shares of the classes, torch reads the number of classes as a plain int if there are
weights (seen to 2.15), and before torch 2.13 the number of samples in any case. Calls with plain sizes are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymFloat, SymInt, Tensor
from torch._decomp import decompositions

from anyshape.intercept.real_numbers import one_if_positive
from anyshape.intercept.size_tensors import known_number
from anyshape.leaves import define
from anyshape.leaves.sized import adaptive_avg_pool1d, arguments, is_open

Function = Callable[..., Any]


CUTS_BOUNDS = len(torch.arange(8.5, dtype=torch.int64)) == 8
"""Whether torch cuts floats to whole numbers before it counts the int64 numbers between them: 2.13 does, 2.15 does not."""
_GIVEN = ("window_length", "periodic")
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
_SMALL_IMAGE = 128 * 128
"""The most places of an output for which torch's kernel for small images is taken."""
_DEFAULTS = {
    "weight": None,
    "size_average": None,
    "ignore_index": -100,
    "reduce": None,
    "reduction": "mean",
    "label_smoothing": 0.0,
}


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


def _keep_length_open(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**_USUAL, **kwargs, **dict(zip(_USUAL, args, strict=False))}
    if not isinstance(given["length"], SymInt) or given["return_complex"]:
        return func(*args, **kwargs)
    return istft(*(given[name] for name in _USUAL if name != "return_complex"))


def replacements() -> dict[Any, Callable[..., Any]]:
    images = {F.interpolate: _interpolate, F.cross_entropy: _cross_entropy}
    signals = {torch.arange: _arange, torch.istft: _keep_length_open, Tensor.istft: _keep_length_open}
    return {**signals, **_of_windows(), **images}


Factors = Sequence[float | SymFloat]


def _interpolate(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    names = ("input", "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor", "antialias")
    defaults = {**dict.fromkeys(names), "mode": "nearest", **kwargs}
    x, size, factor, mode, align_corners, recompute, antialias = arguments(names, args, defaults)
    if mode == "area" and x.dim() == 3 and is_open(x.shape[2]):
        return _pool_areas(x, size, factor)
    factors = factor if isinstance(factor, (tuple, list)) else [factor] * (x.dim() - 2)
    sizes = x.shape[2:]
    if size is not None or antialias or not is_open(*factors) or len(factors) != len(sizes):
        return func(*args, **kwargs)
    size = [torch.sym_int(one * by) for one, by in zip(sizes, factors, strict=True)]
    write = _MODES.get(mode)
    if write is None or recompute:
        return func(x, size=size, mode=mode, align_corners=align_corners)
    return write(x, size, bool(align_corners), factors)


def _pool_areas(x: Tensor, size: Any, factor: Any) -> Any:
    """Calls inside a function of torch's own are not intercepted, so its pooling is called here."""
    one = factor[0] if isinstance(factor, (tuple, list)) else factor
    bins = size if size is not None else math.floor(x.shape[2] * one)
    return adaptive_avg_pool1d(F.adaptive_avg_pool1d, (x, bins), {})


def _nearest(x: Tensor, size: list[Any], align_corners: bool, factors: Factors) -> Any:
    """torch's kernel for small images takes each place once, or twice, where the sizes say so, whatever the factor is."""
    if len(size) == 2:
        is_small = 1 - one_if_positive(size[0] * size[1] - _SMALL_IMAGE)
        sizes = zip(x.shape[2:], size, factors, strict=True)
        factors = [_by_sizes(old, new, factor, (1, 2), is_small) for old, new, factor in sizes]
    return decompositions._upsample_nearest(x, size, factors)


def _nearest_exact(x: Tensor, size: list[Any], align_corners: bool, factors: Factors) -> Any:
    return decompositions._upsample_nearest(x, size, factors, exact=True)


def _linear(x: Tensor, size: list[Any], align_corners: bool, factors: Factors) -> Any:
    """torch's kernel takes an axis as it is where its size does not change, whatever the factor is."""
    sizes = zip(x.shape[2:], size, factors, strict=True)
    factors = [_by_sizes(old, new, factor, (1,), 1) for old, new, factor in sizes]
    return decompositions._upsample_linear(x, size, align_corners, factors)


def _by_sizes(old: Any, new: Any, factor: Any, whole: tuple[int, ...], is_due: Any) -> Any:
    """The factor; where it is due, the whole factor by which one size is the other. Without a condition on sizes."""
    for each in whole:
        is_equal = is_due * (1 - one_if_positive(new - each * old) - one_if_positive(each * old - new))
        factor = factor * (1 - is_equal) + each * is_equal
    return factor


def _cubic(x: Tensor, size: list[Any], align_corners: bool, factors: Factors) -> Any:
    return decompositions.upsample_bicubic2d_default(x, size, align_corners, *factors)


_MODES: dict[str, Callable[[Tensor, list[Any], bool, Factors], Any]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "bilinear": _linear,
    "trilinear": _linear,
    "bicubic": _cubic,
}


def _cross_entropy(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, shares, weight, average, _, reduces, reduction, smoothing = arguments(
        ("input", "target", *_DEFAULTS), args, {**_DEFAULTS, **kwargs}
    )
    is_frozen = weight is not None or torch.__version__ < "2.13"
    is_plain = is_frozen and average is None and reduces is None and reduction in ("mean", "sum", "none")
    if not is_plain or not shares.is_floating_point() or x.shape != shares.shape or not is_open(*x.shape):
        return func(*args, **kwargs)
    axis = min(x.dim() - 1, 1)
    classes = x.shape[axis]
    if smoothing > 0:
        shares = shares * (1 - smoothing) + smoothing / classes
    if weight is not None:
        shares = shares * weight.reshape([-1, *[1] * (x.dim() - axis - 1)])
    losses = -(F.log_softmax(x, axis) * shares).sum(axis)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.numel()
