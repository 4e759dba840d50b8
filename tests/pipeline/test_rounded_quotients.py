"""Branches on rounded quotients of sizes: both sides are in the file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape


class _Tiles(nn.Module):
    """Pads an image to whole tiles: mirrored where that is possible, else with zeros."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width = x.shape[-1]
        padding = 6 * max(1, math.ceil((width - 2) / 6)) + 2 - width
        if padding < width:
            return nn.functional.pad(x, (0, padding), mode="reflect")
        return nn.functional.pad(x, (0, padding))


class _Resized(nn.Module):
    """Resizes to a multiple of 4, to twice that where it is small."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = max(4, round(x.shape[-1] / 4) * 4)
        if size * size < 64:
            size *= 2
        return nn.functional.interpolate(x, size)


@pytest.mark.parametrize("module", [_Tiles(), _Resized()], ids=lambda module: type(module).__name__)
def test_a_branch_on_a_rounded_quotient_has_both_sides(module: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(module, lambda w=30: torch.randn(1, 3, w), path, where=["3 <= w <= 80"])
    loaded = anyshape.load(path)
    for width in range(3, 81):
        x = torch.randn(1, 3, width)
        torch.testing.assert_close(loaded(x), module(x))


class _FarSwitch(nn.Module):
    """Does something else at four sizes far out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3 if round(x.shape[0] / 3.7) == 811 else x


def test_a_far_switch_that_no_rule_of_integers_describes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(_FarSwitch(), lambda n=5: torch.randn(n, 2), path)
    loaded = anyshape.load(path)
    for size in (1, 500, 1500, 2998, 2999, 3002, 3003, 4000):
        x = torch.randn(size, 2)
        try:
            torch.testing.assert_close(loaded(x), _FarSwitch()(x))
        except anyshape.ContractBroken:
            assert size > 1500
