"""`torch.hann_window` and its like, of a length that is open -> the same by arithmetic on positions.

torch's operators take a plain int, so that an open length would be frozen at the traced one (seen to torch 2.13). A window of
one element is 1, as in torch. Calls with a plain length are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import SymInt, Tensor

Shape = Callable[[Tensor, Any, Mapping[str, Any]], Tensor]
_GIVEN = ("window_length", "periodic")


def replacements() -> dict[Any, Callable[..., Any]]:
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
