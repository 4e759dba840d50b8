"""Branches on sizes that leave torch, at numbers that stand nowhere in the code: found by what the code compares."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.explore import find_switches
from anyshape.inputs import declare
from anyshape.modules.watched_comparisons import watch_comparisons


class Hidden(nn.Module):
    """377 is computed when the module is called."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition
        self.a, self.b = 13, 29

    def forward(self, x):
        return x * 2 if self.condition(self, x) else x + 1


def in_a_band(module, x):
    n = np.array(x.shape)[0]
    return module.a * module.b - 5 < n < module.a * module.b + 5


def near_a_number(module, x):
    n = len(str(x.shape[0])) * 0 + int(str(x.shape[0]))
    return abs(n - module.a * module.b) < 4


def by_a_square(module, x):
    n = int(str(x.shape[0]))
    return (n - 20 * module.b - module.a) ** 2 < module.a


def by_a_root(module, x):
    return math.isqrt(x.shape[0]) == module.a + module.b // 5


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize("condition", [in_a_band, near_a_number, by_a_root])
def test_a_file_is_right_on_both_sides_of_a_switch(condition, tmp_path) -> None:
    module = Hidden(condition)
    anyshape.export(module, inputs, tmp_path / "m.onnx", where=["n <= 1000"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 5, 323, 324, 360, 361, 372, 373, 374, 377, 380, 381, 382, 1000):
        x = inputs(n)
        assert torch.equal(torch.as_tensor(loaded(x)), module(x)), n


@pytest.mark.parametrize(
    ("condition", "switches"),
    [
        (in_a_band, {372, 373, 381, 382}),
        (near_a_number, {373, 374, 380, 381}),
        (by_a_square, {589, 590, 596, 597}),
    ],
)
def test_calls_lead_to_the_switches(condition, switches) -> None:
    module = Hidden(condition)
    declared = declare(module, inputs, where=["n <= 1000"])

    def watch(sizes):
        return watch_comparisons(lambda: module(inputs(**sizes)))

    found = {sizes["n"] for sizes in find_switches(declared, {}, watch, lambda sizes: True)}
    assert switches <= found


def test_a_comparison_is_watched_without_being_run_twice() -> None:
    calls = []

    def count(x):
        calls.append(x)
        return len(calls)

    def compare(n, limit):
        if n > limit and count(n) > 3:
            return 1
        return 0 if n - 1 == limit else 2

    found = watch_comparisons(lambda: compare(7, 4))
    assert sorted(found.values()) == [2.0, 3.0]
    assert len(calls) == 1


def test_in_a_loop_the_closest_numbers_count() -> None:
    def find(rows):
        for index in range(rows):
            if index == 199:
                return index
        return None

    assert list(watch_comparisons(lambda: find(20)).values()) == [-180.0]
