"""Loops over a batch whose pieces have as many rows as values say: padded, written into a table, or reduced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.learned import learn
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from anyshape.capture.rerolled import capture_rerolled
from anyshape.intercept.fixed_decisions import FixedDecisions

SIZES = [{"batch": batch, "steps": steps} for batch, steps in ((1, 1), (1, 9), (2, 2), (3, 7), (4, 4), (9, 16))]
"""With an odd number of samples all counts are as `_some` says, with an even one all are 0."""


def _some(batch: int, steps: int) -> torch.Tensor:
    return torch.arange(batch * steps).reshape(batch, steps).remainder(3) * (batch % 2)


def _counted(batch: int = 3, steps: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, steps, 2), _some(batch, steps)


def _measured(batch: int = 3, steps: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, steps, 2), torch.arange(batch).remainder(steps + 1) * (batch % 2)


def _cut(batch: int = 3, steps: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.zeros(batch, dtype=torch.int64)
    lengths[-1] = steps
    return torch.randn(steps, 2), lengths


class Repeated(nn.Module):
    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return pad_sequence([row.repeat_interleave(n, 0) for row, n in zip(x, counts, strict=True)], padding_value=2.5)


class Kept(nn.Module):
    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = [row[count > 0] for row, count in zip(x, counts, strict=True)]
        return pad_sequence(rows, batch_first=True), torch.stack([row.sum(0) for row in rows])


class Marked(nn.Module):
    """Two masks in a row, of integers, and their number."""

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = []
        for count in counts:
            changed = torch.unique_consecutive(count)
            rows.append(changed[changed != 1])
        return pad_sequence(rows, batch_first=True, padding_value=-7), torch.tensor([len(row) for row in rows])


class Sliced(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = [row[: int(length)] for row, length in zip(x, lengths, strict=True)]
        return pad_sequence(rows, batch_first=True).flip(1)


class Split(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return pad_sequence(x.split(lengths.tolist()), batch_first=True, padding_value=-1.0)


class Largest(nn.Module):
    """The largest of what a mask leaves over, at most three, of which there may be none."""

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        found = []
        for row, count in zip(x[..., 0], counts, strict=True):
            left = row[count > 0]
            found.append(left.topk(min(3, left.shape[0])).values.sum())
        return torch.stack(found)


class Written(nn.Module):
    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        rows = [row[count > 0] for row, count in zip(x, counts, strict=True)]
        table = x.new_full(x.shape, -1.0)
        for number, row in enumerate(rows):
            table[number, : row.shape[0]] = row
        return table


MODELS = [
    (Repeated, _counted),
    (Kept, _counted),
    (Marked, _counted),
    (Sliced, _measured),
    (Split, _cut),
    (Largest, _counted),
    (Written, _counted),
]


@pytest.mark.parametrize(("model", "inputs"), MODELS, ids=[model.__name__ for model, _ in MODELS])
def test_a_loop_over_ragged_pieces_is_right_where_values_are_0_too(
    model: type[nn.Module], inputs: Callable[..., tuple[torch.Tensor, ...]]
) -> None:
    learned = learn(capture_rerolled, FixedDecisions(model(), (), ints="masks"), inputs)
    assert learned.differences(SIZES) == []


@pytest.mark.parametrize("model", [Largest, Written])
def test_the_size_of_a_selection_ends_a_part_without_a_question(model: type[nn.Module]) -> None:
    learned = learn(capture_rerolled, FixedDecisions(model(), (), ints="tensors"), _counted)
    assert learned.differences(SIZES) == []


@pytest.mark.parametrize("lengths", [[1, 2], [3, 3], [-1, 6]])
def test_a_split_refuses_lengths_that_torch_refuses(lengths: list[int]) -> None:
    with pytest.raises(IndexError):
        FixedDecisions(Split(), (), ints="masks")(torch.randn(5, 2), torch.tensor(lengths))
