"""Models of two inputs whose answers hang on signs, zeros of either sign, equal values, and on which input has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def polar(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.atan2(y, x), torch.hypot(x, y)


def phase(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.complex(x, y).angle()


def turned(x: torch.Tensor, y: torch.Tensor) -> Any:
    """The angle between a point and its mirror image."""
    return torch.atan2(-y, x) - torch.atan2(y, -x)


def with_sign(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.copysign(x + 1, y), torch.signbit(x), torch.sign(y)


def divided(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.nan_to_num(x // y), torch.nan_to_num(x % y), torch.nan_to_num(torch.fmod(x, y))


def rounded(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.round(x + y), torch.trunc(x), torch.frac(y), torch.round(2 * x) / 2


def matched(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.where(x == y, 100.0, x - y), torch.eq(x, 0) & torch.ne(y, 0)


def first_highest(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.maximum(x, y).argmax(1), (x * 2).argmin(1), x.max(1).indices


def ranked(x: torch.Tensor, y: torch.Tensor) -> Any:
    """A stable sort: the order of equal values is that of the input."""
    order = torch.sort(x, dim=1, stable=True).indices
    return y.gather(1, order), torch.searchsorted(x.sort(1).values, y)


def logarithms(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.xlogy(x.abs(), y.abs()), torch.logaddexp(x, y), torch.special.entr(x.abs())


def stepped(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.heaviside(x, y), torch.clamp(x, max=0.0), torch.relu(-y) - torch.relu(y)


def turned_over(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Infinities whose signs are those of zeros."""
    return torch.tanh(1 / x), torch.atan(1 / (x * y))


SIGNED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    function.__name__: function
    for function in (
        polar,
        phase,
        turned,
        with_sign,
        divided,
        rounded,
        matched,
        first_highest,
        ranked,
        logarithms,
        stepped,
        turned_over,
    )
}
