"""Trials in proportion to an allowance: what is always made, what is left out, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call
from tests.verify_calls import request_of as plain_request
from torch import nn

import anyshape
from anyshape.findings import UsageError
from anyshape.records.verdict import Mismatch, Verdict
from anyshape.verify import Reference, VerifyRequest, verify
from anyshape.verify.plan import SPARED, Planned, plan_in_proportion, plan_trials, small_size
from anyshape.verify.request import Allowance

SIZES = [{"batch": batch, "seq": seq} for batch in (3, 1, 8) for seq in (3, 1, 12)]
DECISIVE = [{"batch": 8, "seq": 1}, {"batch": 1, "seq": 12}, {"batch": 1, "seq": 1}]
RIGHT = "g (float[batch, seq] x) => (float[?, ?] y) { y = Relu(x) }"


def operations(sizes: Mapping[str, int]) -> int:
    return sizes["batch"] * sizes["seq"]


def make(sizes: Mapping[str, int], seed: int) -> Call:
    return Call((torch.randn(sizes["batch"], sizes["seq"], generator=torch.Generator().manual_seed(seed)),))


def flatten(outputs: Any) -> list[tuple[str, Any]]:
    return [("y", outputs)]


class Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def request_of(reference: Reference, total: int, graph: str = RIGHT, most_sizes: int | None = None) -> VerifyRequest:
    allowance = Allowance(of=operations, total=total, decisive=DECISIVE, most_sizes=most_sizes)
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + graph)
    return plain_request(model, reference, make, SIZES, allowance=allowance)


def planned(total: int, most_sizes: int | None = None) -> Planned:
    with Reference(Module(torch.relu), flatten) as reference:
        request = request_of(reference, total, most_sizes=most_sizes)
        return plan_in_proportion(request)


def judged(total: int, function: Any = torch.relu, graph: str = RIGHT) -> Verdict:
    with Reference(Module(function), flatten) as reference:
        return verify(request_of(reference, total, graph))


def test_with_a_large_allowance_no_trial_is_left_out() -> None:
    with Reference(Module(torch.relu), flatten) as reference:
        request = request_of(reference, 10**9)
        assert list(plan_in_proportion(request).trials) == plan_trials(request)
        assert plan_trials(replace(request, allowance=None)) == plan_trials(request)


def test_with_no_allowance_at_all_decisive_sizes_and_an_edge_are_left() -> None:
    found = planned(0)
    draws = [trial for trial in found.trials if trial.edge is None]
    assert [trial.sizes for trial in draws] == sorted(DECISIVE, key=operations)
    assert [trial.values for trial in found.trials if trial.edge is not None] == ["mixed"]


def test_a_wider_size_than_the_cheapest_is_for_edges_if_a_quarter_of_the_allowance_suffices() -> None:
    def small(total: int) -> Mapping[str, int]:
        return small_size(SIZES, Allowance(of=lambda sizes: 10 + operations(sizes), total=total))

    assert small(151) == {"batch": 1, "seq": 1}
    assert small(152) == {"batch": 3, "seq": 3}


def test_the_others_are_left_out_with_the_reason() -> None:
    found = planned(0)
    assert [each.sizes for each in found.untried] == [sizes for sizes in SIZES if sizes not in DECISIVE]
    assert {each.why for each in found.untried} == {SPARED}
    assert "zeros" in found.untried_values
    assert "mixed" not in found.untried_values


@pytest.mark.parametrize("total", range(0, 2000, 170))
def test_beyond_what_is_always_made_the_allowance_is_kept(total: int) -> None:
    always = sum(2 * operations(trial.sizes) for trial in planned(0).trials)
    found = planned(total)
    assert sum(2 * operations(trial.sizes) for trial in found.trials) <= max(total, always)
    assert {tuple(trial.sizes.items()) for trial in (*found.trials, *found.spared)} == {
        tuple(sizes.items()) for sizes in SIZES
    }


def test_a_limit_of_sizes_holds_beside_decisive_ones() -> None:
    for most in (5, 2):
        draws = [trial for trial in planned(10**9, most).trials if trial.edge is None]
        assert len(draws) == max(most, len(DECISIVE))


def test_every_size_is_tried_or_untried() -> None:
    verdict = judged(0)
    assert verdict.passed
    tried = [dict(each) for each in verdict.tried]
    untried = [dict(each.sizes) for each in verdict.untried]
    assert sorted(map(str, [*tried, *untried])) == sorted(map(str, SIZES))
    assert "zeros" in verdict.untried_values


def test_the_tolerance_without_an_allowance_left_is_still_measured() -> None:
    assert judged(0, torch.tanh, RIGHT.replace("Relu", "Tanh")).floor == "float64 eager"


@pytest.mark.parametrize("at", DECISIVE, ids=str)
def test_a_file_that_is_wrong_at_a_decisive_size_alone_is_noticed(at: Mapping[str, int]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if tuple(x.shape) == (at["batch"], at["seq"]) else torch.relu(x)

    verdict = judged(0, function)
    assert [dict(failure.sizes) for failure in verdict.failures][:1] == [at]
    difference = verdict.failures[0].difference
    assert difference is not None
    assert difference.mismatch is Mismatch.VALUE


class Dear(nn.Module):
    """So much arithmetic for so few operators that not all sizes are in proportion."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1024, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Dear.calls += 1
        return torch.tanh(self.layer(x))


def dear_inputs(batch: int = 2, rows: int = 700) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, rows, 1024)}


def export_dear(**options: Any) -> anyshape.Export:
    return anyshape.export(Dear(), dear_inputs, where=["1 <= batch <= 8", "1 <= rows <= 900"], **options)


def test_a_dear_model_is_compared_in_proportion_and_the_result_has_what_was_left_out() -> None:
    result = export_dear()
    tried = [dict(sizes) for sizes in result.verdict.tried]
    for name, end in (("batch", 1), ("batch", 8), ("rows", 1), ("rows", 900)):
        assert any(sizes[name] == end for sizes in tried)
    for name in ("batch", "rows"):
        assert any(sizes[name] % 2 and sizes[name] > 1 for sizes in tried)
    left_out = [each for each in result.verdict.untried if each.why == SPARED]
    assert left_out
    assert "in proportion to the export" in str(result)
    assert not [each for each in export_dear(thorough=True).verdict.untried if each.why == SPARED]


def test_quick_compares_at_eight_sizes_unless_more_decide() -> None:
    inputs = lambda batch=3, seq=5: torch.randn(batch, seq)  # noqa: E731
    where = ["1 <= batch <= 64", "1 <= seq <= 64"]
    result = anyshape.export(nn.Softmax(-1), inputs, where=where, verify="quick")
    assert len(result.verdict.tried) == 8
    assert any(sizes["batch"] == 64 for sizes in result.verdict.tried)
    assert any(sizes["seq"] == 64 for sizes in result.verdict.tried)
    assert len(anyshape.export(nn.Softmax(-1), inputs, where=where).verdict.tried) > 20


def test_an_unknown_verification_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="AS060"):
        anyshape.export(nn.Softmax(-1), lambda batch=3: torch.randn(batch, 4), verify="qiuck")  # type: ignore[arg-type]
