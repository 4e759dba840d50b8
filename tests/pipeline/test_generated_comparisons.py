"""Sizes that code compares which Python itself wrote, or the standard library: the user's comparisons as well."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

import anyshape
from anyshape.report.text import describe_ladder

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


BRANCHES = {
    "equal": "Size(h, w) == Size(40, 56)",
    "unequal to either": "Size(h, w) != Size(40, 56) and Size(h, w) != Size(56, 40)",
    "in order": "Size(h, w) > Size(40, 56)",
    "inside another": "Nested(Size(h, w)) == Nested(Size(40, 56))",
    "in a list": "Size(h, w) in [Size(7, 9), Size(40, 56)]",
    "the place in a list": "sorted([Size(h, w), Size(40, 56)]).index(Size(40, 56)) == 0",
    "a named tuple": "Pair(h, w) in (Pair(7, 9), Pair(40, 56))",
    "a total order": "Height(h) >= Height(40)",
    "two numbers": "h == 40 and w == 56",
}


class Branching(nn.Module):
    """A module whose forward was typed: its code and that of the dataclasses are in no file."""

    def __init__(self, branch: str) -> None:
        super().__init__()
        space = dict(globals())
        exec(f"def forward(x):\n    h, w = x.shape\n    return x * 2 if {branch} else x", space)
        self.forward = space["forward"]


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.long_table
def test_a_comparison_in_generated_code_is_right_at_every_size(name: str, tmp_path: Path) -> None:
    module = Branching(BRANCHES[name])
    result = anyshape.export(module, lambda h=6, w=8: torch.rand(h, w), tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for h, w in POINTS:
        x = torch.rand(h, w)
        torch.testing.assert_close(torch.as_tensor(loaded(x)), module(x), msg=f"h={h}, w={w}")


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if Size(*x.shape) == Size(40, 56) else x


def test_a_condition_of_generated_code_has_the_line_that_compares() -> None:
    audit = describe_ladder(anyshape.export(Doubled(), lambda h=6, w=8: torch.rand(h, w)))
    line = "in Doubled.forward:   return x * 2 if Size(*x.shape) == Size(40, 56) else x"
    guards = [each for each in audit.splitlines() if each.startswith("  guard")]
    assert "h != 40, asked by your code" in audit
    assert all(each.endswith(line) for each in guards), audit
