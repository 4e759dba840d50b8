"""Random programs of size arithmetic are learned from traces: never wrong, almost always exported, and refused by line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from tests.learned import learn
from torch.nn import functional as F

from anyshape.capture.generalized import capture_generalized
from anyshape.domain import choose_sizes
from anyshape.findings import PromiseBroken

PARTS = 20 if os.environ.get("ANYSHAPE_THOROUGH") else 1
PROGRAMS = 25  # of each part

Arithmetic = Callable[[int, int], int]

# Each is at least 1 where both sizes are.
_NUMBERS: dict[str, Callable[[int], Arithmetic]] = {
    "affine": lambda k: lambda b, t: b + k * t,
    "half": lambda k: lambda b, t: t // k + 1,
    "ceiling": lambda k: lambda b, t: (t + k - 1) // k,
    "multiple": lambda k: lambda b, t: t - t % k + k,
    "product": lambda k: lambda b, t: b * t,
    "least": lambda k: lambda b, t: min(t, 3 * k),
    "greatest": lambda k: lambda b, t: max(t - k, 1),
    "remainder": lambda k: lambda b, t: t % k + 1,
    "constant": lambda k: lambda b, t: k,
    "other": lambda k: lambda b, t: b,
}


def _slice(x: torch.Tensor, number: int) -> torch.Tensor:
    return x[:, :number]


def _tail(x: torch.Tensor, number: int) -> torch.Tensor:
    return x[:, -1:].expand(int(x.shape[0]), number, 4)


def _pad(x: torch.Tensor, number: int) -> torch.Tensor:
    return F.pad(x, (0, 0, 0, number))


def _positions(x: torch.Tensor, number: int) -> torch.Tensor:
    return x + torch.arange(int(x.shape[1])).view(1, -1, 1) * number


def _zeros(x: torch.Tensor, number: int) -> torch.Tensor:
    return torch.cat([x, torch.zeros(int(x.shape[0]), number, 4)], 1)


def _tile(x: torch.Tensor, number: int) -> torch.Tensor:
    return x.tile(1, 2, 1) * number


def _flat(x: torch.Tensor, number: int) -> torch.Tensor:
    batch, length = int(x.shape[0]), int(x.shape[1])
    return (x.reshape(batch * length, 4) + number).reshape(batch, length, 4)


def _scale(x: torch.Tensor, number: int) -> torch.Tensor:
    return x / math.sqrt(number)


def _share(x: torch.Tensor, number: int) -> torch.Tensor:
    return x + torch.full((1, int(x.shape[1]), 1), 1 / number)


def _item(x: torch.Tensor, number: int) -> torch.Tensor:
    return x * torch.tensor([number, number + 1]).sum().item()


def _windows(x: torch.Tensor, number: int) -> torch.Tensor:
    padded = F.pad(x, (0, 0, 0, (3 - int(x.shape[1]) % 3) % 3))
    return padded.view(int(x.shape[0]), int(padded.shape[1]) // 3, 3, 4).mean(2) + number


_STEPS = (_slice, _tail, _pad, _positions, _zeros, _tile, _flat, _scale, _share, _item, _windows)


class Program(torch.nn.Module):
    """Steps one after the other, each with a number computed from the sizes in Python."""

    def __init__(self, steps: list[tuple[Callable[[torch.Tensor, int], torch.Tensor], str, int]]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length = int(x.shape[0]), int(x.shape[1])
        for step, name, k in self.steps:
            x = step(x, _NUMBERS[name](k)(batch, length))
        return x


programs = st.lists(
    st.tuples(st.sampled_from(_STEPS), st.sampled_from(sorted(_NUMBERS)), st.integers(2, 6)), min_size=1, max_size=4
)


def _inputs(batch: int = 3, length: int = 7) -> tuple[torch.Tensor]:
    return (torch.randn(batch, length, 4),)


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_of_size_arithmetic_are_exported_right_or_refused_by_line(part: int) -> None:
    exported: list[Program] = []
    refused: list[str] = []

    @settings(max_examples=PROGRAMS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @seed(20 + part)
    @given(programs)
    def run(steps: list[tuple[Callable[[torch.Tensor, int], torch.Tensor], str, int]]) -> None:
        program = Program(steps)
        try:
            learned = learn(capture_generalized, program, _inputs, ["1 <= batch <= 40", "1 <= length <= 300"])
        except PromiseBroken as refusal:
            assert refusal.finding.where is not None, str(refusal)
            refused.append(str(refusal))
            return
        sizes = choose_sizes(learned.declared.domain, limit=14, seed=1).points
        assert learned.differences(sizes) == []
        exported.append(program)

    run()
    assert len(exported) >= 9 * len(refused), "\n".join(refused)


def test_a_program_that_is_learned_wrong_would_be_noticed() -> None:
    learned = learn(capture_generalized, Program([(_pad, "half", 3)]), _inputs)
    other = type(learned)(Program([(_pad, "half", 4)]), learned.declared, learned.captured, learned.models)
    assert learned.differences([{"batch": 2, "length": 12}]) == []
    assert other.differences([{"batch": 2, "length": 12}]) != []
