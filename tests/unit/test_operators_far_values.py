"""Values far from ordinary ones: places of a grid outside the image, and spreads whose square float32 cannot hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, find_differences

FAR = [0.3, -1.0, 1.2, 5.0, -100.0, 1e7, -1e9, 1e20, -1e30, float("inf"), -float("inf"), float("nan")]


def read_far(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An image, and places of which one coordinate is far outside, or no number."""
    image = torch.arange(1.0, 21.0).view(1, 1, 4, 5).repeat(count, 2, 1, 1)
    places = [[far, 0.1] for far in FAR] + [[0.1, far] for far in FAR]
    return image, torch.tensor(places).repeat(count, count, 1, 1)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("corners", [True, False])
def test_far_places_of_a_grid_read_as_in_eager_mode(mode: str, padding: str, corners: bool) -> None:
    def read(x: torch.Tensor, grid: torch.Tensor) -> Any:
        return F.grid_sample(x, grid, mode, padding, align_corners=corners)

    row = Row("far-places", read, [read_far(count) for count in (2, 1, 3)], {0: (1, 2, 3), 1: (2, 3)})
    assert not find_differences(row)


@pytest.mark.parametrize("spread", [torch.std, torch.var, torch.var_mean, torch.std_mean])
def test_a_spread_whose_square_is_no_float32(spread: Any) -> None:
    torch.manual_seed(0)
    row = Row("spread", lambda x: spread(x, -1), [(torch.randn(n, 6) * 1e20,) for n in (4, 1, 7)], {0: (1,)})
    assert not find_differences(row)
