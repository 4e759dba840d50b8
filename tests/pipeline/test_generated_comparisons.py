"""Sizes that code compares which Python itself wrote, or the standard library: the user's comparisons as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

import anyshape

POINTS = [(40, 56), (56, 40), (40, 57), (40, 55), (41, 1), (39, 99), (6, 8), (1, 1)]


@dataclass(order=True, unsafe_hash=True)
class Size:
    height: int
    width: int


@dataclass
class Nested:
    size: Size
    channels: int = 3


class Pair(NamedTuple):
    height: int
    width: int


@functools.total_ordering
class Height:
    def __init__(self, height: int) -> None:
        self.height = height

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Height) and self.height == other.height

    def __lt__(self, other: Height) -> bool:
        return self.height < other.height


BRANCHES: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda h, w: Size(h, w) == Size(40, 56),
    "unequal to either": lambda h, w: Size(h, w) != Size(40, 56) and Size(h, w) != Size(56, 40),
    "in order": lambda h, w: Size(h, w) > Size(40, 56),
    "inside another": lambda h, w: Nested(Size(h, w)) == Nested(Size(40, 56)),
    "in a list": lambda h, w: Size(h, w) in [Size(7, 9), Size(40, 56)],
    "the place in a list": lambda h, w: sorted([Size(h, w), Size(40, 56)]).index(Size(40, 56)) == 0,
    "a named tuple": lambda h, w: Pair(h, w) in (Pair(7, 9), Pair(40, 56)),
    "a total order": lambda h, w: Height(h) >= Height(40),
}


class Branching(nn.Module):
    def __init__(self, branch: Callable[[int, int], bool]) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.branch(x.shape[0], x.shape[1]) else x


@pytest.mark.parametrize("name", BRANCHES)
def test_a_comparison_in_generated_code_is_right_at_every_size(name: str, tmp_path: Path) -> None:
    module = Branching(BRANCHES[name])
    result = anyshape.export(module, lambda h=6, w=8: torch.rand(h, w), tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for h, w in POINTS:
        x = torch.rand(h, w)
        torch.testing.assert_close(torch.as_tensor(loaded(x)), module(x), msg=f"h={h}, w={w}")


class Unlike(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape
        if Size(h, w) == Size(40, 56):
            return x.new_tensor([str(h)])
        return x


def test_a_condition_of_generated_code_has_the_line_that_compares(tmp_path: Path) -> None:
    declared = ["h <= 64", "w <= 64"]
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Unlike(), lambda h=6, w=8: torch.rand(h, w), tmp_path / "m.onnx", where=declared)
    assert "test_generated_comparisons.py" in str(broken.value)
    assert "<string>" not in str(broken.value)
