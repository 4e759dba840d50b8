"""A model that uses what an export replaces in user code: builtins, math, numpy, a cache, warnings, the fused encoder layer."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from math import sqrt

import numpy as np
import torch
from torch import nn


@lru_cache(maxsize=8)
def scale(size: int) -> float:
    return 1.0 / sqrt(size)


class Served(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.norm = nn.BatchNorm1d(8)
        self.lines: dict[int, int] = {}

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = int(x.shape[1] * 0.5) + 1
        assert type(x.ndim) is int and np.zeros(2, dtype=float).dtype == np.float64
        table = torch.from_numpy(np.sin(np.arange(x.shape[1]) / 3).astype(np.float32))
        steps = torch.arange(x.shape[1]) / 7 + torch.zeros(x.shape[1])
        hidden = self.norm(self.layer(x, src_key_padding_mask=mask).transpose(1, 2)).transpose(1, 2)
        number = math.log(x.shape[1] + 1) * half + sum(map(int, x.shape)) / len(x)
        return hidden * scale(3) + (table + steps)[:, None] + number


def served() -> Served:
    torch.manual_seed(0)
    return Served().eval()


def served_inputs(batch: int = 2, seq: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, seq, 8), "mask": torch.zeros(batch, seq, dtype=torch.bool)}
