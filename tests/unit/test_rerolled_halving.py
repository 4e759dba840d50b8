"""Loops in which a size shrinks: halved, divided or less by a growing width; right at sizes that were never traced."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.learned import learn
from torch import nn

from anyshape.capture.generalized.record import Recorder
from anyshape.capture.rerolled import capture_rerolled
from anyshape.capture.rerolled.growth import find_slow
from anyshape.inputs import declare

_AROUND_POWERS = (*range(1, 20), 31, 32, 33, 64, 65, 127, 128, 129, 1023, 1024, 1025)


def _steps(batch: int = 2, length: int = 9) -> tuple[torch.Tensor]:
    return (torch.randn(batch, length, 4),)


def _images(batch: int = 2, height: int = 20, width: int = 30) -> tuple[torch.Tensor]:
    return (torch.randn(batch, 3, height, width),)


class PadsOddLengths(nn.Module):
    """A branch of its own in each turn: whether a row is padded."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.shape[1] > 2:
            if x.shape[1] % 2 == 1:
                x = F.pad(x, (0, 0, 0, 1), value=0.5)
            pairs = x.unflatten(1, (x.shape[1] // 2, 2))
            x = pairs.amax(2) * torch.sigmoid(self.gate(pairs.amin(2)))
        return x.mean(1)


class CutsOddLengths(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.sum(1)
        while x.shape[1] >= 3:
            if x.shape[1] % 2:
                x = x[:, :-1]
            x = (x[:, ::2] - x[:, 1::2]) / 2
            total = total + x.amax(1)
        return total


class SmallerSide(nn.Module):
    """How many turns there are depends on two sizes, and what is left has both."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turns = 0
        while min(x.shape[2], x.shape[3]) >= 5:
            x = F.max_pool2d(x, 2)
            turns += 1
        return x, x.mean((2, 3)) * turns


class GrowingWidths(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start, width, total = 0, 1, x.new_zeros(x.shape[0], 4)
        while start + width <= x.shape[1]:
            total = total * 0.5 + x[:, start : start + width].amax(1)
            start, width = start + width, width + 1
        return total


@pytest.mark.parametrize("model", [PadsOddLengths, CutsOddLengths, GrowingWidths], ids=lambda model: model.__name__)
def test_a_loop_in_which_a_length_shrinks_is_right_around_powers_of_two(model: type[nn.Module]) -> None:
    learned = learn(capture_rerolled, model(), _steps)
    assert learned.differences([{"batch": 3, "length": length} for length in _AROUND_POWERS]) == []
    assert any(node.op_type == "Loop" for node in learned.model.graph)


def test_a_loop_that_halves_two_sizes_ends_where_the_smaller_one_does() -> None:
    learned = learn(capture_rerolled, SmallerSide(), _images)
    sides = [(1, 1), (4, 90), (5, 5), (9, 10), (19, 20), (40, 39), (5, 161), (160, 10), (200, 319)]
    assert learned.differences([{"batch": 1, "height": height, "width": width} for height, width in sides]) == []


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[:, 0]
        for row in range(1, x.shape[1]):
            total = total * 0.5 + x[:, row]
        return total


@pytest.mark.parametrize(
    ("model", "inputs", "dims"),
    [
        (CutsOddLengths, _steps, ("length",)),
        (GrowingWidths, _steps, ("length",)),
        (SmallerSide, _images, ("height", "width")),
        (Rows, _steps, ()),
        (nn.Identity, _steps, ()),
    ],
)
def test_calls_that_grow_more_slowly_than_a_size_show_a_loop_that_shrinks_it(model, inputs, dims) -> None:
    module = model()
    declared = declare(module, inputs)
    assert find_slow(Recorder(module, declared), declared, lambda sizes: True) == dims
