"""How much work one comparison may take, beside the work of the example."""

from __future__ import annotations

import pytest
import torch

from anyshape.explore.cost_estimates import AFFORDABLE, CHEAP, costing
from anyshape.inputs import declare


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
