"""Which calls of a module are made again because they wrote something."""

from __future__ import annotations

import torch
from torch import nn

from anyshape.inputs import Inputs, flatten_outputs
from anyshape.verify import Reference


class Grows(nn.Module):
    """A table that grows with the input, which has to have an even length."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.arange(4.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > self.table.shape[0]:
            self.table = torch.arange(float(x.shape[0]))
        return (x + self.table[: x.shape[0]]).view(-1, 2)


def sizes_of(reference: Reference) -> list[int]:
    return [len(call.inputs.args[0]) for call in reference.noted]


def test_of_calls_that_wrote_the_same_the_smallest_that_was_answered_is_noted() -> None:
    with Reference(Grows(), flatten_outputs) as reference:
        for size in (2, 100, 8, 5, 12):
            reference.run(Inputs((torch.randn(size),)))
        assert sizes_of(reference) == [8]


def test_a_call_that_wrote_and_was_refused_is_noted_until_one_is_answered() -> None:
    with Reference(Grows(), flatten_outputs) as reference:
        reference.run(Inputs((torch.randn(5),)))
        assert sizes_of(reference) == [5]
        reference.run(Inputs((torch.randn(10),)))
        assert sizes_of(reference) == [10]


class GrowsTwice(nn.Module):
    """Two tables, each of which grows with one of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.columns = torch.arange(4.0), torch.arange(4.0)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if len(x) > len(self.rows):
            self.rows = torch.arange(float(len(x)))
        if len(y) > len(self.columns):
            self.columns = torch.arange(float(len(y)))
        return x[:, None] * self.rows[: len(x), None] + y * self.columns[: len(y)]


def test_a_call_that_wrote_only_what_two_others_wrote_is_not_noted() -> None:
    with Reference(GrowsTwice(), flatten_outputs) as reference:
        for rows, columns in ((9, 8), (9, 3), (2, 8)):
            reference.run(Inputs((torch.randn(rows), torch.randn(columns))))
        assert sizes_of(reference) == [9, 2]
        assert not any(call.has_drawn for call in reference.noted)


def test_a_call_with_nan_does_not_stand_for_one_with_numbers() -> None:
    with Reference(Grows(), flatten_outputs) as reference:
        for x in (torch.full((8,), torch.nan), torch.randn(10)):
            reference.run(Inputs((x,)))
        assert [(len(call.inputs.args[0]), call.has_nan) for call in reference.noted] == [(8, True), (10, False)]
