"""Convolutions with open numbers, shifts, distances, grids and resizing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, find_differences, sizes
from torch import nn

SHAPES = ((2, 5, 8), (3, 6, 8), (1, 1, 8), (4, 13, 8))
IMAGES = ((2, 4, 8, 10), (1, 4, 4, 4), (3, 4, 7, 11), (2, 4, 16, 13), (1, 4, 1, 1))
CHANNELS = {0: (1,)}


def modulated(x: torch.Tensor, style: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = x.shape
    scaled = (weight[None] * style[:, None, :, None, None]).reshape(batch * 6, channels, 3, 3)
    joined = x.reshape(1, batch * channels, height, width)
    return F.conv2d(joined, scaled, padding=1, groups=batch).view(batch, 6, height, width)


def modulated_up(x: torch.Tensor, style: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = x.shape
    scaled = (weight[None] * style[:, :, None, None, None]).reshape(batch * channels, 6, 3, 3)
    joined = x.reshape(1, batch * channels, height, width)
    wide = F.conv_transpose2d(joined, scaled, stride=2, padding=1, groups=batch)
    return wide.view(batch, 6, 2 * height - 1, 2 * width - 1)


def correlated(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row with itself at every offset: the padding follows the size."""
    height, width = x.shape[2:]
    rows, kernel = x.mean((0, 2))[None], x[:1, :, :1].mean(2)
    return F.conv1d(rows, kernel, padding=width - 1), F.conv2d(x, x[:1, :, :2, :2], padding=(height // 2, 1), stride=2)


def styled(*weight: int) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    images = ((2, 6, 5), (1, 4, 4), (3, 7, 9), (5, 3, 3))
    return [(torch.randn(b, 4, h, w), torch.randn(b, 4), torch.randn(*weight)) for b, h, w in images]


class UpAgain(nn.Module):
    """Down by two, and up to exactly the size it came from."""

    def __init__(self, axes: int, **options: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        down, up = getattr(nn, f"Conv{axes}d"), getattr(nn, f"ConvTranspose{axes}d")
        self.down, self.up = down(4, 4, 3, 2, 1).eval(), up(4, 4, 3, 2, **options).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(x), output_size=x.shape[2:])


def pairs(*rows: tuple[int, int]) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return [(torch.randn(2, n, 4), torch.randn(2, m, 4)) for n, m in rows]


def with_theta(*images: tuple[int, ...]) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return [(torch.randn(*image), torch.randn(image[0], len(image) - 2, len(image) - 1)) for image in images]


def read_volume(mode: str, padding: str, corners: bool) -> Any:
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners=corners)


def volumes(*counts: tuple[int, int]) -> list[tuple[torch.Tensor, ...]]:
    """Read at places that lie beyond the edges too."""
    torch.manual_seed(0)
    return [(torch.randn(b, 2, n, n + 1, 4), 3 * torch.rand(b, 3, n + 2, 2, 3) - 1.5) for b, n in counts]


ROWS_OF_TWO = ((5, 5), (1, 3), (7, 2), (30, 40))
GROUPS = {0: (1,), 1: (1,), 2: (0, 1, 2, 3)}
ROWS = [
    Row("groups-by-batch", modulated, styled(6, 4, 3, 3), GROUPS),
    Row("open-padding", correlated, sizes((2, 4, 6, 5), (1, 4, 3, 9), (3, 4, 7, 2)), CHANNELS),
    Row("transposed-groups-by-batch", modulated_up, styled(4, 6, 3, 3), GROUPS),
    Row("output-size-1d", UpAgain(1, padding=1), sizes((2, 4, 9), (1, 4, 4), (3, 4, 17), (2, 4, 1)), CHANNELS),
    Row("output-size-2d", UpAgain(2, padding=1), sizes(*IMAGES), CHANNELS),
    Row("roll-by-a-size", lambda x: x.roll((x.shape[1] // 2, -(x.shape[2] // 2)), (1, 2)), sizes(*SHAPES, (2, 0, 8))),
    Row("roll-far", lambda x: x.roll(-7, 1), sizes(*SHAPES, (2, 0, 8))),
    Row("roll-all", lambda x: x.roll(3), sizes(*SHAPES)),
    Row("cdist", torch.cdist, pairs(*ROWS_OF_TWO)),
    Row("cdist-1", lambda a, b: torch.cdist(a, b, p=1), pairs(*ROWS_OF_TWO)),
    Row("pdist", torch.pdist, sizes((5, 4), (1, 4), (7, 4))),
    Row("affine-grid", lambda x, t: F.affine_grid(t, list(x.shape), align_corners=False), with_theta(*IMAGES)),
    Row(
        "affine-grid-corners", lambda x, t: F.affine_grid(t, list(x.shape), align_corners=True), with_theta(*IMAGES[:4])
    ),
    Row(
        "affine-grid-3d",
        lambda x, t: F.affine_grid(t, list(x.shape), False),
        with_theta((2, 1, 3, 4, 5), (1, 1, 2, 2, 9)),
    ),
    *(
        Row(f"volume-{mode}-{padding}-{corners}", read_volume(mode, padding, corners), volumes((2, 3), (1, 1), (3, 5)))
        for mode, padding, corners in (
            ("bilinear", "zeros", False),
            ("bilinear", "border", True),
            ("bilinear", "reflection", False),
            ("bilinear", "reflection", True),
            ("nearest", "zeros", True),
        )
    ),
    Row("round-the-edge", lambda x: F.pad(x, (2, 1, 1, 2), mode="circular"), sizes(*IMAGES[:4], (0, 4, 4, 4))),
    Row("mirror-and-cut", lambda x: F.pad(x, (-1, 2, 1, -1), mode="reflect"), sizes(*IMAGES[:4])),
    Row(
        "nearest-to-a-size", lambda x: F.interpolate(x, size=(3, 5)), sizes(*IMAGES[:4], (1, 4, 21, 25), (1, 4, 41, 7))
    ),
    Row("nearest-by-a-fraction", lambda x: F.interpolate(x, scale_factor=(1.7, 0.6)), sizes(*IMAGES[:4])),
    Row("nearest-by-whole-factors", lambda x: F.interpolate(x, scale_factor=(2, 3)), sizes(*IMAGES)),
    Row("nearest-exact", lambda x: F.interpolate(x, scale_factor=(1.7, 0.6), mode="nearest-exact"), sizes(*IMAGES[:4])),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []
