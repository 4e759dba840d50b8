"""`F.interpolate` by factors that are computed from sizes: torch's own rounding, at sizes that they keep or double, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import anyshape


class Images(torch.nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x[None, None], scale_factor=(8.5 / x.shape[0], 2.0), mode=self.mode)


class Lines(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        factor = 7.5 / x.shape[1]
        fitted = F.interpolate(x[None], scale_factor=factor, mode="linear", recompute_scale_factor=True)
        return *(
            F.interpolate(x[None], scale_factor=factor, mode=mode) for mode in ("nearest", "linear", "area")
        ), fitted


class Positions(torch.nn.Module):
    """Learned positions of a grid of 7 by 7, as vision transformers fit them to an image."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = torch.nn.Parameter(torch.randn(1, 3, 7, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factors = [(size // 4 + 0.1) / 7 for size in x.shape[-2:]]
        return F.avg_pool2d(x, 4) + F.interpolate(self.grid, scale_factor=factors, mode="bicubic")


SIZES = (1, 2, 4, 8, 9, 49, 98)


def assert_near(actual: Any, expected: Any) -> None:
    """Places between two elements are computed in single precision by both, and not in the same steps."""
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=3e-4)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_images(mode: str, tmp_path: Path) -> None:
    module = Images(mode)
    anyshape.export(module, lambda n: (torch.randn(n, 6),), tmp_path / "m.onnx", where="n <= 200")
    file = anyshape.load(tmp_path / "m.onnx")
    for size in SIZES:
        x = torch.randn(size, 6)
        assert_near(file(x), module(x))


def test_lines(tmp_path: Path) -> None:
    module = Lines()
    anyshape.export(module, lambda n: (torch.randn(2, n),), tmp_path / "m.onnx", where="n <= 200")
    file = anyshape.load(tmp_path / "m.onnx")
    for size in SIZES:
        x = torch.randn(2, size)
        assert_near(tuple(file(x)), module(x))


def test_positions_of_a_grid(tmp_path: Path) -> None:
    module = Positions().eval()
    anyshape.export(
        module, lambda h, w: (torch.randn(2, 3, 4 * h, 4 * w),), tmp_path / "m.onnx", where=["h <= 40", "w <= 40"]
    )
    file = anyshape.load(tmp_path / "m.onnx")
    for height, width in ((7, 7), (1, 9), (14, 3), (21, 40)):
        x = torch.randn(2, 3, 4 * height, 4 * width)
        assert_near(file(x), module(x))
