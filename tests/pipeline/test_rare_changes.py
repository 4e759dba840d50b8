"""Models that are random, or keep state, for rare values or at far sizes only: told so, with the line, and never kept."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import anyshape


class ForValues(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * random.random() if x.min() < 0 else x


class ForLengths(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * float(np.random.rand()) if x.shape[1] > 100 else x


class ByTorch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x) if x.shape[1] > 100 else x


class CountsNegatives(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.min() < 0:
            self.count += 1
        return x * (1 + self.count)


class RemembersLong(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 100:
            self.last.copy_(x.mean())
        return x + self.last


class InVain(nn.Module):
    """Draws numbers that reach no answer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        random.random(), np.random.rand(), torch.rand(3)
        return x * 2


def inputs(batch: int = 2, seq: int = 5) -> torch.Tensor:
    return torch.rand(batch, seq, 4)


@pytest.mark.parametrize("model", [ForValues(), ForLengths(), ByTorch()], ids=lambda model: type(model).__name__)
@pytest.mark.long_table
def test_rare_randomness_is_told_with_its_line(model: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS144") as broken:
        anyshape.export(model, inputs, tmp_path / "m.onnx")
    assert broken.value.finding.where is not None and "x" in broken.value.finding.where.text
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("model", [CountsNegatives(), RemembersLong()], ids=lambda model: type(model).__name__)
def test_rare_state_is_told(model: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS143"):
        anyshape.export(model, inputs, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_numbers_that_are_drawn_in_vain_harm_nothing(tmp_path: Path) -> None:
    assert not anyshape.export(InVain(), inputs, tmp_path / "m.onnx").findings
