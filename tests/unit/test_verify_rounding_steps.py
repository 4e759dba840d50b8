"""Numbers that rounding moves over a step may be on either side of it; no others may."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from tests.verify_calls import Call
from torch import nn

import anyshape
from anyshape.verify import Reference
from anyshape.verify.noise import Yardstick
from anyshape.verify.reference import Answer

ROUNDED = 180.4999  # nearer to a tie than 16 roundings of single precision


class Function(nn.Module):
    def __init__(self, forward: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.forward = forward  # type: ignore[assignment]


def largest_sensitivity(forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> list[float]:
    """Of each element of the output."""
    with Reference(Function(forward), lambda outputs: [("y", outputs)]) as reference:
        inputs = Call((x,))
        answer = reference.run(inputs)
        assert isinstance(answer, Answer)
        found: Iterator[tuple[object, ...]] = Yardstick(reference).sensitivities(inputs, answer, seed=0)
        *_, last = found
        return list(last[0].reshape(-1).tolist())  # type: ignore[attr-defined]


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.float() * 0.1 * (ROUNDED / 0.3)


@pytest.mark.parametrize(
    "step",
    [
        lambda y: y.round().to(torch.uint8),
        lambda y: (y + 0.5).to(torch.uint8),
        lambda y: (y + 0.5).floor().long(),
        lambda y: y > 180.5,
    ],
)
def test_what_is_near_a_step_is_sensitive_and_nothing_else(step: Callable[[torch.Tensor], torch.Tensor]) -> None:
    near, far = largest_sensitivity(lambda x: step(scaled(x)), torch.tensor([3, 2]))
    assert near == float("inf") and far == 0.0


def test_integers_that_are_divided_have_one_answer() -> None:
    assert largest_sensitivity(lambda x: (x / 7).floor().long(), torch.arange(0, 50)) == [0.0] * 50


def test_what_follows_from_sizes_alone_has_one_answer() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return scaled(torch.tensor(x.shape[0])).round() + 0 * x

    assert largest_sensitivity(forward, torch.randn(3)) == [0.0] * 3


def test_half_to_even_has_one_answer() -> None:
    assert largest_sensitivity(lambda x: (x / 2).round().long(), torch.arange(-5, 6)) == [0.0] * 11


def pictures() -> torch.Tensor:
    """The last one is of one color."""
    random = torch.randint(0, 256, (50, 2, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return torch.cat([random, torch.full((1, 2, 4), 140, dtype=torch.uint8)])


def halved(x: torch.Tensor) -> torch.Tensor:
    """Pixels with weights such as 3/7, added up in single precision whatever the module is in."""
    x = x.to(torch.float32)[:, None]
    return nn.functional.interpolate(x, size=(1, 2), mode="bilinear", antialias=True).flatten()


def test_a_tie_that_is_a_rounded_sum_may_be_on_either_side() -> None:
    ties = (halved(pictures()) % 1 == 0.5).tolist()
    found = largest_sensitivity(lambda x: halved(x).round().to(torch.uint8), pictures())
    assert any(ties) and found == [float("inf") if tie else 0.0 for tie in ties]


def test_a_whole_number_that_is_a_rounded_sum_has_one_answer() -> None:
    assert halved(pictures())[-1] == 140.0
    assert largest_sensitivity(lambda x: halved(x).floor().long(), pictures())[-1] == 0.0


def steps_of_length(x: torch.Tensor) -> torch.Tensor:
    return x * torch.log(torch.tensor(float(x.shape[0]))).div(math.log(7)).ceil()


def test_steps_that_sizes_alone_decide_have_one_answer() -> None:
    """log(7) / log(7) is above 1 in single precision: its ceil is 2 there, and 1 in double precision."""
    assert max(largest_sensitivity(steps_of_length, torch.randn(7))) < 1e-5


def test_a_number_that_python_reads_from_sizes_has_one_answer() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * int(torch.exp(torch.log(torch.tensor(float(x.shape[0])))))

    assert max(largest_sensitivity(forward, torch.randn(63))) < 1e-4


def test_steps_of_values_beside_those_of_sizes_stay_sensitive() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return (scaled(x).round() + steps_of_length(torch.ones(7))[0]).to(torch.uint8)

    near, far = largest_sensitivity(forward, torch.tensor([3, 2]))
    assert near == float("inf") and far == 0.0


class Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.conv(x.float() / 255) * 255).clamp(0, 255).round().to(torch.uint8)


def test_a_picture_of_bytes_is_verified() -> None:
    def inputs(batch: int = 2, h: int = 5, w: int = 7) -> torch.Tensor:
        return torch.randint(0, 256, (batch, 3, h, w), dtype=torch.uint8)

    assert anyshape.export(Picture(), inputs).is_kept
