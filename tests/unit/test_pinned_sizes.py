"""Regions of which each has one size of a dim are those of a loop; a few branches are not."""

from __future__ import annotations

import pytest
import torch

import anyshape
from anyshape.capture.pinned_sizes import pinned_between
from anyshape.domain import Condition, declare_domain, format_condition, holds, parse_condition
from anyshape.records.captured import Region

DOMAIN = declare_domain(["n", "k"], ["1 <= k <= 4"])


def regions(*rules: str) -> list[Region]:
    conditions = map(parse_condition, rules)
    return [Region(None, {}, (), _somewhere(condition), condition) for condition in conditions]


def _somewhere(condition: Condition) -> dict[str, int]:
    return next(sizes for n in range(1, 40) for k in (3, 4) if holds(condition, sizes := {"n": n, "k": k}))


@pytest.mark.parametrize(
    ("rules", "pin"),
    [
        (["2 < n and 3 < n and n <= 4", "n > 2 and 5 >= n and n > 4"], "n == 5"),
        (["n > 2 and n <= 3", "n > 3"], None),
        (["n > 2 and n <= 3", "n == 3"], None),
        (["k > 2 and k <= 3", "k > 3 and k <= 4"], None),
        (["2 * n > 5 and n <= 3", "n > 3 and n <= 4"], "n == 4"),
        (["n % 2 == 1 and (3 * n + 1) // 4 == 4", "n % 2 == 0 and n // 2 == 1"], "n == 2"),
        (["n % 2 == 1 and (3 * n + 1) // 4 == 4", "n % 2 == 0"], None),
    ],
)
def test_conditions_leave_one_size_in_each_region(rules, pin) -> None:
    found = pinned_between(regions(*rules), DOMAIN)
    assert (None if found is None else format_condition(found)) == pin


class Weights(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = [1.0, 1.0]
        while len(weights) < x.shape[1]:
            weights.append(weights[-1] + weights[-2])
        return x * torch.tensor(weights)[: x.shape[1]]


def test_a_list_that_grows_up_to_a_size_is_refused_as_a_loop() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Weights(), lambda batch=3, length=7: torch.randn(batch, length), None, strategy="symbolic")
    (finding,) = broken.value.findings
    assert finding.code == "AS113" and "while len(weights)" in finding.where.text
