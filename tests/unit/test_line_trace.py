"""Lines of the user's code, visited as a call runs them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

from anyshape.modules.line_trace import find_difference


class Collected:
    """Lies in a cycle: only Python's garbage collector ends it."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        ended = True
        del ended


def compute(numbers: Iterator[float]) -> torch.Tensor:
    made = [*map(list, [()] * 2000)]  # enough for the garbage collector to start
    return torch.ones(len(made)) * next(numbers)  # the line that differs


def test_garbage_collected_in_one_of_two_runs_is_not_the_line_that_differs() -> None:
    numbers = iter((1.0, 2.0))
    gc.collect()
    for _ in range(3):
        Collected()
    source = find_difference(lambda: compute(numbers), lambda: compute(numbers))
    assert source is not None
    assert "the line that differs" in source.text
    assert gc.isenabled()
