"""`F.interpolate` and `F.cross_entropy` with sizes that torch would freeze.

    F.interpolate(x, scale_factor=(h / 14, w / 14), mode="bicubic")
    F.cross_entropy(x, shares)  ->  -(log_softmax(x) * shares * weight).sum() / number of samples

torch.export takes factors that are computed from sizes at the traced sizes. Here they stay open: the size is computed from
them, and the rest is torch's own decomposition, which takes both. Means over areas of one axis stay open, too.

Where the targets of `cross_entropy` are shares of the classes, torch reads the number of classes as a plain int where there are
weights (seen to 2.15), and before torch 2.13 the number of samples in any case. Other calls are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymFloat, Tensor
from torch._decomp import decompositions

from anyshape.intercept.real_numbers import one_if_positive
from anyshape.leaves.sized import adaptive_avg_pool1d, arguments, is_open

Function = Callable[..., Any]
Factors = Sequence[float | SymFloat]

_SMALL_IMAGE = 128 * 128
"""The most places of an output for which torch's kernel for small images is taken."""


def replacements() -> dict[Any, Callable[..., Any]]:
    return {F.interpolate: _interpolate, F.cross_entropy: _cross_entropy}


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


_DEFAULTS = {
    "weight": None,
    "size_average": None,
    "ignore_index": -100,
    "reduce": None,
    "reduction": "mean",
    "label_smoothing": 0.0,
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
