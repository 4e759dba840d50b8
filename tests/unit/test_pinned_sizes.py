"""Regions of which each has one size of a dim are those of a loop; a few branches are not."""

from __future__ import annotations

import pytest
import torch

import anyshape
from anyshape.capture.pinned_sizes import pinned_between
from anyshape.domain import declare_domain, format_condition, parse_condition
from anyshape.records.captured import Region

DOMAIN = declare_domain(["n", "k"], ["1 <= k <= 4"])


def regions(*rules: str) -> list[Region]:
    return [Region(None, {}, (), {}, parse_condition(rule)) for rule in rules]


@pytest.mark.parametrize(
    ("rules", "pin"),
    [
        (["2 < n and 3 < n and n <= 4", "n > 2 and 5 >= n and n > 4"], "n == 5"),
        (["n > 2 and n <= 3", "n > 3"], None),
        (["n > 2 and n <= 3", "n == 3"], None),
        (["k > 2 and k <= 3", "k > 3 and k <= 4"], None),
        (["2 * n > 5 and n <= 3", "n > 3 and n <= 4"], None),
    ],
)
def test_bounds_leave_one_size_in_each_region(rules, pin) -> None:
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


class DigitsOfLongOnes(torch.nn.Module):
    """Beyond 30 the digits of both sizes decide; up to there, nothing does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 30:
            digits = "%d%d" % (x.shape[0], x.shape[1])  # noqa: UP031 - such a model
            return x - 1 if sum(map(int, digits)) % 5 == 0 else x + 1
        return x * 2


class Entries(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        for at in (31, 37, 40, 48, 64, 80):
            if n == at:
                return x * at
        return x - 1


def inputs(batch: int = 2, n: int = 7) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, n),)


def test_a_size_that_is_made_a_text_on_one_side_of_a_branch_is_told_by_its_line() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(DigitsOfLongOnes(), inputs, where=["n <= 128"])
    (finding,) = broken.value.findings
    assert finding.code == "AS113"
    assert "digits = " in finding.where.text


def test_a_table_of_sizes_is_no_row_of_them(tmp_path) -> None:
    result = anyshape.export(Entries(), inputs, tmp_path / "m.onnx")
    assert result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 30, 31, 40, 41, 80, 81):
        (x,) = inputs(3, n)
        torch.testing.assert_close(loaded(x), Entries()(x))
