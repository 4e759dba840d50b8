"""`cross_entropy` with shares of the classes for targets  ->  its formula, in functions that keep sizes open.

    cross_entropy(x, shares)  ->  -(log_softmax(x) * shares * weight).sum() / number of samples

torch reads the number of classes as a plain int where there are weights (seen to 2.15), and before torch 2.13 the number of
samples in any case: an open size would be frozen at the traced one. Other calls are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from anyshape.leaves.sized import arguments, is_open

Function = Callable[..., Any]
_DEFAULTS = {
    "weight": None,
    "size_average": None,
    "ignore_index": -100,
    "reduce": None,
    "reduction": "mean",
    "label_smoothing": 0.0,
}


def replacements() -> dict[Any, Callable[..., Any]]:
    return {F.cross_entropy: _cross_entropy}


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
