"""A row of the round trip: a plain torch model, exported at one size, made dynamic again, and compared with eager at others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Inputs = Callable[..., dict[str, torch.Tensor]]


@dataclass(frozen=True)
class Row:
    """`words` are for the axes of inputs; `sizes` those of the static file; `others` those at which it is compared."""

    name: str
    make: Callable[[], torch.nn.Module]
    inputs: Inputs
    words: Mapping[str, str]
    sizes: Mapping[str, int]
    others: Sequence[Mapping[str, int]]


def image(channels: int = 3, h: int = 32, w: int = 32) -> Inputs:
    return lambda batch=1, h=h, w=w: {"x": torch.randn(batch, channels, h, w)}


def sequence(width: int = 16, seq: int = 10) -> Inputs:
    return lambda batch=1, seq=seq: {"x": torch.randn(batch, seq, width)}


def tokens(vocabulary: int = 50, seq: int = 10) -> Inputs:
    return lambda batch=1, seq=seq: {"ids": torch.randint(0, vocabulary, (batch, seq))}


def batches(**sizes: int) -> dict[str, Any]:
    """Only the batch varies."""
    return {"sizes": {"batch": 1, **sizes}, "others": [{"batch": size} for size in (2, 3, 7)]}


def pixels(batch: int = 1, h: int = 32, w: int = 32, step: int = 1) -> dict[str, Any]:
    """Batch, height and width vary."""
    return {
        "sizes": {"batch": batch, "h": h, "w": w},
        "others": [
            {"batch": 3, "h": h + step, "w": w + 2 * step},
            {"batch": 2, "h": 2 * h, "w": w + step},
            {"batch": 1, "h": h, "w": 2 * w},
        ],
    }


def steps(batch: int = 1, seq: int = 10) -> dict[str, Any]:
    """Batch and length vary."""
    return {
        "sizes": {"batch": batch, "seq": seq},
        "others": [{"batch": 3, "seq": seq + 3}, {"batch": 2, "seq": 5}, {"batch": 5, "seq": 2 * seq + 1}],
    }
