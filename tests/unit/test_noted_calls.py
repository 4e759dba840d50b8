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


def test_of_calls_that_wrote_the_same_the_smallest_that_was_answered_is_noted() -> None:
    with Reference(Grows(), flatten_outputs) as reference:
        for size in (2, 100, 8, 5, 12):
            reference.run(Inputs((torch.randn(size),)))
        assert [len(inputs.args[0]) for inputs in reference.noted] == [8]


def test_a_call_that_wrote_and_was_refused_is_noted_until_one_is_answered() -> None:
    with Reference(Grows(), flatten_outputs) as reference:
        reference.run(Inputs((torch.randn(5),)))
        assert [len(inputs.args[0]) for inputs in reference.noted] == [5]
        reference.run(Inputs((torch.randn(10),)))
        assert [len(inputs.args[0]) for inputs in reference.noted] == [10]
