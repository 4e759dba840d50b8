"""A fixed number of pieces of an open axis: each piece's size follows the axis, and the number is a guard."""

from __future__ import annotations

import re

import pytest
import torch
from operator_exports import Row, export, find_differences, sizes

THREES = ((2, 6, 8), (1, 7, 8), (3, 3, 8), (2, 13, 8), (1, 5, 8))
ANY = (*THREES, (1, 4, 8), (2, 2, 8), (2, 1, 8), (1, 0, 8))

ROWS = [
    Row("chunk", lambda x: x.chunk(3, 1), sizes(*THREES)),
    Row("chunk-by-function", lambda x: torch.chunk(x, chunks=2, dim=-1), sizes((2, 7), (2, 8), (3, 2))),
    Row("tensor-split", lambda x: x.tensor_split(3, 1), sizes(*ANY)),
    Row("tensor-split-by-name", lambda x: torch.tensor_split(x, sections=4, dim=1), sizes(*ANY)),
    Row("tensor-split-at", lambda x: x.tensor_split([2, 4], 1), sizes(*ANY)),
    Row("split-in-halves", lambda x: x.split(x.shape[1] // 2, 1), sizes((2, 6), (2, 8), (1, 2))),
    Row("split-by-sizes", lambda x: x.split([x.shape[1] // 2, x.shape[1] - x.shape[1] // 2], 1), sizes(*THREES)),
    Row("split-with-a-rest", lambda x: torch.split(x, 4, 1), sizes((2, 6), (2, 8), (1, 5))),
    Row("repeat-interleave", lambda x: x.repeat_interleave(x.shape[0], 0), sizes((2, 5), (1, 1), (3, 7), (0, 2))),
    Row("repeat-interleave-flat", lambda x: x.repeat_interleave(3), sizes((2, 5), (1, 1), (3, 7))),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


def holds(guards: set[str], size: int) -> bool:
    """Whether conditions on one size are true of it."""
    return all(eval(re.sub(r"s\d+", str(size), guard)) for guard in guards)


def test_three_chunks_are_promised_exactly_where_eager_gives_three() -> None:
    _, guards = export(Row("", lambda x: x.chunk(3, 1), sizes(*THREES)))
    for size in range(1, 40):
        assert holds(guards, size) == (len(torch.zeros(size).chunk(3)) == 3)


def test_halves_are_promised_exactly_where_eager_gives_two() -> None:
    _, guards = export(Row("", lambda x: x.split(x.shape[1] // 2, 1), sizes((2, 6))))
    for size in range(2, 40):
        assert holds(guards, size) == (len(torch.zeros(size).split(size // 2)) == 2)


def test_tensor_split_is_promised_at_every_size() -> None:
    _, guards = export(Row("", lambda x: x.tensor_split(3, 1), sizes(*ANY)))
    assert all(holds(guards, size) for size in range(40))


def test_static_axes_are_left_to_torch() -> None:
    row = Row("", lambda x: x.chunk(2, 2), sizes((2, 5, 8), (3, 1, 8)), {0: (2,)})
    assert find_differences(row) == []
