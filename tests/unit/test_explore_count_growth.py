"""Counts beyond 256 are predicted where those before are on a quadratic, and counted where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.explore import costing
from anyshape.explore.call_counter import _in_proportion
from anyshape.explore.count_scaling import predict_counts
from anyshape.inputs import declare
from anyshape.intercept.operation_counts import Counted, count_call, count_real_call

SIZES = (1, 7, 64, 256)


def counts(number: Callable[[int], int], sizes: tuple[int, ...] = SIZES) -> list[tuple[int, Counted]]:
    return [(size, Counted(40, number(size), size)) for size in sizes]


@pytest.mark.parametrize("number", [lambda n: 5, lambda n: 3 * n + 2, lambda n: 12 * n * n + n + 9])
def test_counts_on_a_polynomial_are_predicted(number: Callable[[int], int]) -> None:
    assert predict_counts(counts(number), 4096) == Counted(40, number(4096), 4096)


def test_a_small_part_of_rounded_sizes_is_no_obstacle() -> None:
    found = predict_counts(counts(lambda n: 100 * n + -(-n // 2)), 1024)
    assert found is not None
    assert found.elements == pytest.approx(100 * 1024 + 512, rel=0.02)


@pytest.mark.parametrize("number", [lambda n: n**3, lambda n: 2 ** min(n, 40), lambda n: min(n, 100)])
def test_other_counts_are_not_predicted(number: Callable[[int], int]) -> None:
    assert predict_counts(counts(number), 1024) is None


def test_three_counts_or_small_sizes_predict_nothing() -> None:
    assert predict_counts(counts(lambda n: n, (1, 7, 256)), 1024) is None
    assert predict_counts(counts(lambda n: n, (1, 2, 3, 64)), 1024) is None


class Attention(nn.Module):
    def __init__(self, calls: list[int]) -> None:
        super().__init__()
        self.note = calls.append

    def forward(self, x: torch.Tensor) -> Any:
        self.note(x.shape[0])
        return torch.softmax(x @ x.T, -1) @ x


def test_a_call_at_a_far_size_is_estimated_without_counting_there() -> None:
    calls: list[int] = []
    module = Attention(calls)
    cost = costing(module, declare(module, lambda n=7: {"x": torch.randn(n, 8)}))
    cost({"n": 1})
    assert cost.elements({"n": 16_384}) == pytest.approx(16_384**2 * 2, rel=0.1)
    assert max(calls) == 256


class Deep(nn.Module):
    """Many operators, each of two dims, beside weights that are only looked at."""

    def __init__(self, shapes: list[Any], layers: int = 16, width: int = 24) -> None:
        super().__init__()
        self.note = shapes.append
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> Any:
        self.note(tuple(x.shape))
        for layer in self.layers:
            x = torch.softmax(layer(x) @ x.transpose(-1, -2), -1) @ x
        return x


@pytest.mark.parametrize("sizes", [{"batch": 6, "seq": 512}, {"batch": 300, "seq": 8}])
def test_calls_of_many_operators_are_counted_at_small_sizes_of_the_other_dims(sizes: dict[str, int]) -> None:
    shapes: list[Any] = []
    module = Deep(shapes)
    declared = declare(module, lambda batch=6, seq=8: {"x": torch.randn(batch, seq, 24)})
    shapes.clear()
    found = costing(module, declared).elements(sizes)
    assert max(max(shape[:2]) for shape in shapes) <= 64
    assert all(min(shape[:2]) == 1 for shape in shapes if max(shape[:2]) > 8)
    x = torch.randn(sizes["batch"], sizes["seq"], 24)
    counted = count_real_call(lambda: module(x), 1000)
    assert counted is not None
    assert found == pytest.approx(counted.elements + x.numel(), rel=0.05)


@pytest.mark.parametrize("number", [lambda n: 7 * n + 1000, lambda n: 5])
def test_three_counts_on_a_line_predict_those_of_many_operators(number: Callable[[int], int]) -> None:
    known = counts(number, (9, 24, 64))
    assert predict_counts(known, 4096) is None
    assert predict_counts(known, 4096, is_long=True) == Counted(40, number(4096), 4096)


def test_three_counts_on_no_line_predict_nothing() -> None:
    assert predict_counts(counts(lambda n: n * n, (9, 24, 64)), 4096, is_long=True) is None


class Strided(Deep):
    """Refuses small pictures."""

    def forward(self, x: torch.Tensor) -> Any:
        if x.shape[1] < 40:
            raise ValueError("too small")
        return super().forward(x)


def test_a_call_that_refuses_small_sizes_is_counted_at_near_ones() -> None:
    shapes: list[Any] = []
    module = Strided(shapes)
    cost = costing(module, declare(module, lambda batch=2, seq=64: {"x": torch.randn(batch, seq, 24)}))
    large = cost.elements({"batch": 2, "seq": 4096})
    assert max(shape[1] for shape in shapes) == 4 * 192
    real = count_real_call(lambda: module(torch.randn(2, 1024, 24)), 10_000)
    assert real is not None
    assert cost.elements({"batch": 2, "seq": 1024}) == pytest.approx(real.elements, rel=0.1)
    assert large == pytest.approx(16 * real.elements, rel=0.1)


def test_fake_tensors_and_real_ones_have_the_same_operators() -> None:
    module, x = Deep([]), torch.randn(2, 8, 24)
    assert count_call(lambda values: module(*values), [x], 10_000) == count_real_call(lambda: module(x), 10_000)


def test_a_multiplication_of_float16_counts_as_four() -> None:
    numbers = [torch.ones(3, 4, dtype=dtype) for dtype in (torch.float16, torch.float32, torch.bfloat16)]
    found = [count_real_call(lambda x=x: x @ x.t(), 10) for x in numbers]  # type: ignore[misc]
    assert [each and each.multiplied for each in found] == [288, 72, 72]


@pytest.mark.parametrize(("operators", "expected"), [(98, 100), (99, 100), (50, None)])
def test_few_operators_that_the_smallest_sizes_spare_are_no_step(operators: int, expected: int | None) -> None:
    ends, steps = (Counted(100, 10, 1), Counted(100, 20, 1)), (Counted(operators, 5, 1), Counted(99, 10, 1))
    found = _in_proportion(ends, steps, Counted(99, 40, 1))
    assert (found and (found.operators, found.elements)) == (expected and (expected, 80))
