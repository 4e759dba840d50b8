"""Loops whose steps do not all do the same, or count by quotients and limits: right where they bend, and beyond."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from tests.learned import answering, learn
from torch import nn

from anyshape.capture.generalized.fit_forms import Points
from anyshape.capture.generalized.not_learned import NotCaptured
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.template import Repeated
from anyshape.capture.rerolled import capture_rerolled
from anyshape.capture.rerolled.growth import check_growth
from anyshape.explore import sizes_at_numbers
from anyshape.inputs import declare
from anyshape.modules.numbers_in_code import numbers_in_code

_LENGTHS = (1, 2, 3, 8, 9, 10, 19, 20, 21, 33, 34, 35, 70)


def _inputs(batch: int = 3, length: int = 5) -> tuple[torch.Tensor]:
    return (torch.randn(batch, length, 8),)


class Remainder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(9, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[:, 0]
        for step in range(1, x.shape[1]):
            total = total + x[:, step] * self.rows[step % 9]
        return total


class Warmup(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, states = x.new_zeros(x.shape[0], 8), []
        for step in range(x.shape[1]):
            weight = min(1.0, (step + 1) / 20)
            state = (1 - weight) * state + weight * x[:, step]
            states.append(state)
        return torch.stack(states, 1)


class ChunkMask(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        mask = torch.zeros(length, length, dtype=torch.bool)
        for step in range(length):
            mask[step, max(0, (step // 4 - 1) * 4) : min((step // 4 + 1) * 4, length)] = True
        return (x @ x.transpose(1, 2)).masked_fill(~mask, 0.0)


class ChangesLate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, states = x.new_zeros(x.shape[0], 8), []
        for step in range(x.shape[1]):
            state = 0.5 * state + x[:, step]
            if step >= 33:
                state = state.clamp(-0.1, 0.1)
            states.append(state)
        return torch.stack(states, 1)


class LastTwo(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = [x[:, 0]]
        for step in range(1, x.shape[1]):
            older = states[-2] if len(states) > 1 else torch.zeros_like(states[-1])
            states.append(torch.tanh(states[-1] + 0.5 * older) + x[:, step])
        return torch.stack(states, 1)


class PerhapsNone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x[:, start : start + 2].sum(1) for start in range(2, x.shape[1], 2)]
        return torch.stack(parts, 1) if parts else x.new_zeros(x.shape[0], 0, 8)


@pytest.mark.parametrize(
    "model", [Remainder, Warmup, ChunkMask, ChangesLate, LastTwo, PerhapsNone], ids=lambda model: model.__name__
)
@pytest.mark.long_table
def test_a_loop_that_bends_is_right_before_and_after_it_bends(model: type[nn.Module]) -> None:
    module = model()
    declared = declare(module, _inputs)
    suspects = sizes_at_numbers(declared, numbers_in_code(module))
    assert answering(module, declared)({"batch": 2, "length": 40})
    learned = learn(partial(capture_rerolled, suspects=suspects), module, _inputs)
    assert learned.differences([{"batch": 2, "length": length} for length in _LENGTHS]) == []


class HalfAsOften(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x[:, 0]
        for step in range(x.shape[1] // 2 + 1):
            state = torch.tanh(state + step)
        return state


class NoLoop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] == 4 else x + 1


@pytest.mark.parametrize("model", [Remainder, HalfAsOften], ids=lambda model: model.__name__)
def test_short_traces_are_enough_to_see_a_loop(model: type[nn.Module]) -> None:
    module = model()
    declared = declare(module, _inputs)
    with pytest.raises(NotCaptured, match="AS122"):
        check_growth(Recorder(module, declared), declared, answering(module, declared))


def test_a_branch_is_no_loop() -> None:
    declared = declare(NoLoop(), _inputs)
    check_growth(Recorder(NoLoop(), declared), declared, answering(NoLoop(), declared))


def test_more_steps_than_a_number_has_bits_still_make_a_point() -> None:
    points = Points([Repeated("i", ()).point(count, powers=True) for count in (0, 1, 70)])
    assert points.columns["i"].tolist() == [0, 1, 70] and points.columns["i_pow2"].tolist()[:2] == [1, 2]
