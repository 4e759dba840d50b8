"""Lengths that layers round from one another, segments of an open length, and slices whose end may be negative stay open."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import anyshape


class Whole(nn.Module):
    """A convolution whose last window is full: as much is padded as is missing, mirrored where that is possible."""

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, kernel, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
        length, total = x.shape[-1], kernel - stride
        windows = (length - kernel + total) / stride + 1
        left, right = total, (math.ceil(windows) - 1) * stride + kernel - total - length
        assert right >= 0
        more = 0
        if length <= max(left, right):
            more = max(left, right) - length + 1
            x = nn.functional.pad(x, (0, more))
        x = nn.functional.pad(x, (left, right), mode="reflect")
        return self.conv(x[..., : x.shape[-1] - more])


class Segments(nn.Module):
    """One segment of the whole length, where none is given."""

    def __init__(self) -> None:
        super().__init__()
        self.segment = None
        self.conv = nn.Conv1d(1, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-1]
        step = length if self.segment is None else self.segment
        return torch.cat([self.conv(x[..., at : at + step]) for at in range(0, length, step)], -1)


class Trimmed(nn.Module):
    """What comes after five places from the end is left out; where there are fewer, Python counts from the end."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[:, : x.shape[1] - 5]
        return kept if kept.shape[1] == 0 else kept * 2


@pytest.mark.parametrize(
    ("model", "channels"),
    [(nn.Sequential(Whole(7, 1), Whole(4, 2), Whole(3, 1), Whole(8, 4)), 2), (Segments(), 1)],
    ids=["whole windows", "segments"],
)
def test_the_range_of_the_length_stays_open(model: nn.Module, channels: int) -> None:
    result = anyshape.export(model.eval(), (torch.randn(2, channels, 64),), None, dynamic=({0: "batch", 2: "samples"},))
    assert result.strategy == "symbolic"
    assert result.contract.domain.dim("samples").max is None
    assert not result.contract.rules


def test_a_slice_to_an_end_that_may_be_negative_is_right_on_both_sides() -> None:
    result = anyshape.export(Trimmed(), (torch.randn(2, 9),), None, dynamic={"x": "batch seq"})
    assert result.strategy == "symbolic"
    assert {sizes["seq"] for sizes in (each.sizes for each in result.verdict.compared)} >= {4, 5, 6}
