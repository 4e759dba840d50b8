"""Axes that change together are found from one example: in pairs and groups, by ratios, sums and quotients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.inputs import declare
from anyshape.inputs.axis_moves import Place, find_moves

R = torch.randn


class Does(nn.Module):
    """A module without weights that computes a function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any = None, z: Any = None) -> Any:
        return self.function(*(each for each in (x, y, z) if each is not None))


ROWS = {
    "two axes of one size by chance, twice": (
        lambda x, y: x + y,
        (R(4, 4), R(4, 4)),
        {"x": "x_0 x_1", "y": "x_0 x_1"},
    ),
    "three inputs": (lambda x, y, z: x + y + z, (R(3), R(3), R(3)), {"x": "x_0", "y": "x_0", "z": "x_0"}),
    "twice another": (lambda x, y: x[::2] + y + x[: len(x) // 2], (R(6), R(3)), {"x": "2*y_0", "y": "y_0"}),
    "a constant sum": (
        lambda x, y: torch.cat([x, y]) * torch.ones(32),
        (R(10), R(22)),
        {"x": "x_0", "y": "32-x_0"},
    ),
    "one longer": (lambda x, y: x[1:] * y, (R(8), R(7)), {"x": "y_0+1", "y": "y_0"}),
    "rounded up": (lambda x, y: x[::2] + y, (R(9), R(5)), {"x": "x_0", "y": "(x_0+1)//2"}),
    "rounded down": (lambda x, y: x[1::2] + y, (R(9), R(4)), {"x": "x_0", "y": "x_0//2"}),
    "a sum": (
        lambda x, y, z: torch.cat([x, y]) * z,
        (R(3), R(4), R(7)),
        {"x": "x_0", "y": "y_0", "z": "x_0+y_0"},
    ),
    "a multiple of 4": (lambda x: x.reshape(-1, 4), (R(8),), {"x": "x_0"}),
    "at the end of a table": (lambda x: x + torch.ones(16)[: len(x)], (R(16),), {"x": "x_0"}),
    "a fixed size": (lambda x: x + torch.ones(8), (R(3, 8),), {"x": "x_0 8"}),
    "free channels": (lambda x: x.cumsum(1), (R(3, 5, 8),), {"x": "x_0 x_1 x_2"}),
    "a list of one length": (
        lambda x: torch.stack([each + 1 for each in x]),
        ([R(3), R(3), R(3)],),
        {"x.0": "x_0_0", "x.1": "x_0_0", "x.2": "x_0_0"},
    ),
    "an index refuses large values, not sizes": (
        lambda x, y: x[y],
        (R(5), torch.tensor([4, 0, 3])),
        {"x": "x_0", "y": "y_0"},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_found(name: str) -> None:
    function, inputs, expected = ROWS[name]
    declared = declare(Does(function), inputs, dynamic="auto")
    found = {leaf.path: " ".join(str(axis).replace(" ", "") for axis in leaf.axes) for leaf in declared.tensor_leaves}
    assert found == expected


class Counted:
    """A module that answers where a condition on its axes holds."""

    def __init__(self, example: Mapping[Place, int], condition: Callable[..., bool]) -> None:
        self.example, self.condition, self.calls = example, condition, 0

    def accepts(self, sizes: Mapping[Place, int], /) -> bool:
        self.calls += 1
        return self.condition(*{**self.example, **sizes}.values())


def test_forty_caches_move_together_in_few_calls() -> None:
    caches = {(f"past.{layer}.{part}", 2): 4 for layer in range(20) for part in "kv"}
    sizes = {("ids", 1): 3, ("mask", 1): 7, **caches}
    trial = Counted(sizes, lambda ids, mask, *past: len(set(past)) == 1 and mask == ids + past[0])
    moves = find_moves(trial, sizes)
    assert moves == [{("ids", 1): 1, ("mask", 1): 1}, {**dict.fromkeys(caches, 1), ("mask", 1): 1}]
    assert trial.calls < 1200


def test_a_size_that_only_broadcasts_is_no_move() -> None:
    sizes = {("x", 0): 4, ("y", 0): 4}
    assert find_moves(Counted(sizes, lambda x, y: x == 4 and y in (1, 4)), sizes) == []
