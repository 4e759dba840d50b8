"""How much work one comparison may take, beside the work of the example."""

from __future__ import annotations

import pytest
import torch

from anyshape.explore import call_counter
from anyshape.explore.cost_estimates import AFFORDABLE, CHEAP, costing
from anyshape.inputs import declare
from anyshape.intercept.operation_counts import count_real_call


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2


@pytest.mark.parametrize(
    ("elements", "cheap", "affordable"),
    [
        pytest.param(1_000, None, None, id="small: the usual limits"),
        pytest.param(400_000, 8, None, id="larger: a multiple of the example"),
        pytest.param(2_000_000, None, 16, id="large: no more than a long comparison"),
        pytest.param(30_000_000, 1, 4, id="takes long itself: the example, four of them for a few"),
    ],
)
def test_an_example_that_takes_long_is_not_multiplied(elements: int, cheap: int | None, affordable: int | None) -> None:
    declared = declare(Doubled(), torch.ones(elements, 1), dynamic="n 1")
    cost = costing(Doubled(), declared)
    example = cost({"n": elements})
    assert cost.cheap == (cheap * example if cheap else (AFFORDABLE if example > CHEAP else CHEAP))
    assert cost.affordable == (affordable * example if affordable else AFFORDABLE)


def test_the_arithmetic_of_an_lstm_counts() -> None:
    """It is one operator for all steps of a layer, for which torch has no formula."""
    lstm = torch.nn.LSTM(16, 32, num_layers=2, bidirectional=True)
    counted = count_real_call(lambda: lstm(torch.ones(7, 3, 16)), 100)
    weights = 2 * 4 * 32 * (16 + 32) + 2 * 4 * 32 * (64 + 32)
    assert counted is not None
    assert counted.multiplied >= 7 * 3 * 2 * weights


def test_the_scores_of_attention_count() -> None:
    """On the CPU attention is one operator, for which torch has no formula, and its scores are no tensor."""
    query, key = torch.ones(2, 3, 40, 8), torch.ones(2, 3, 50, 8)
    counted = count_real_call(lambda: torch.nn.functional.scaled_dot_product_attention(query, key, key), 100)
    assert counted is not None
    assert counted.multiplied == 2 * 3 * 40 * 50 * 4 * 8
    assert counted.computed > 2 * 3 * 40 * 50


class Layers(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x):
        for _ in range(self.count):
            x = x + 1
        return x


def test_a_module_of_many_operators_is_traced_at_few_numbers_of_its_code() -> None:
    def most_traces(count: int, *, thorough: bool = False) -> int | None:
        module = Layers(count)
        return costing(module, declare(module, torch.ones(3, 2), dynamic="n 2"), thorough=thorough).most_traces

    few, many = most_traces(2000), most_traces(2)
    assert few is not None and many is not None and few < 10 < 100 < many
    assert most_traces(2000, thorough=True) is None


def test_a_call_that_raises_with_floats_is_not_made_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halves(torch.nn.Module):
        def forward(self, x):
            first, second = x.chunk(2)
            return first + second

    def fail(*_: object) -> None:
        pytest.fail("sizes that the module refuses are refused without memory as well")

    declared = declare(Halves(), torch.ones(4, 3), dynamic="n 3")
    monkeypatch.setattr(call_counter, "count_call", fail)
    counter = call_counter.CallCounter(Halves(), declared)
    assert counter.base is not None
    assert counter.count_along("n", 7, call_counter.Scaling([(4, counter.base)])) is None
