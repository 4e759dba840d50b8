"""Branches on an axis that is computed from a dim which no axis gives back: both sides are in one file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anyshape


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def is_cut(x):
    return x.cumsum(1) if x.shape[1] == 9 else x.flip(1)


def is_short(x):
    return x.cumsum(1) if 2 * x.shape[1] + 1 < 9 else x.flip(1)


def is_long(x):
    return x.cumsum(1) if x.shape[1] * x.shape[0] > 20 else x.flip(1)


CASES = [
    (
        is_cut,
        lambda n=2, steps=5: torch.randn(n, min(steps, 9), 3),
        ["1 <= steps <= 40"],
        "steps",
        (1, 2, 8, 9, 10, 40),
    ),
    (is_short, lambda n=2, steps=5: torch.randn(n, min(steps, 12), 3), [], "steps", (1, 3, 4, 5, 12, 40)),
    (is_long, lambda n=2, a=5, b=3: torch.randn(n, a + b, 3), [], "a", (1, 6, 7, 8, 9, 33)),
    (is_long, lambda n=2, size=9: torch.randn(n, size // 3 + 1, 3), [], "size", (3, 11, 26, 27, 29, 30, 60)),
]


@pytest.mark.parametrize("function, inputs, where, dim, sizes", CASES)
def test_both_sides_are_in_the_file(function, inputs, where, dim, sizes, tmp_path) -> None:
    result = anyshape.export(Module(function), inputs, tmp_path / "m.onnx", where=where)
    assert result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for size in sizes:
        for n in (1, 2, 5):
            x = inputs(**{"n": n, dim: size})
            np.testing.assert_allclose(loaded(x), function(x).numpy(), rtol=1e-4, atol=1e-5)
