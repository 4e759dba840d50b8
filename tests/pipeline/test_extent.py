"""A capture without proof is promised as far as its file was compared: ends, open ranges, what is left out, equal bytes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

import anyshape
from anyshape.domain import holds
from anyshape.explore import CHEAP, costing
from anyshape.inputs import declare

Sizes = dict[str, int]


class Doubled(nn.Module):
    """Not proved in the generalized rung: its sizes are Python numbers."""

    def forward(self, x):
        return x.reshape(int(x.shape[0]) * 2, -1) * 2


class Counted(nn.Module):
    """The same for two dims."""

    def forward(self, x):
        return x * 2 + int(x.shape[0]) * int(x.shape[1])


class Steps(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = state * 0.5 + x[:, t]
        return state


class Plain(nn.Module):
    def forward(self, x):
        return x * 2


def rows(n=3):
    return torch.randn(n, 4)


def grid(batch=2, seq=5):
    return torch.randn(batch, seq)


def learned(**options):
    return anyshape.export(Doubled(), rows, strategy="generalized", **options)


def test_an_open_range_ends_where_the_file_was_compared() -> None:
    result = learned()
    assert [finding.code for finding in result.findings] == ["AS132"]
    assert result.contract.domain.dim("n").max == 4096
    assert {"n": 4096} in [dict(sizes) for sizes in result.verdict.tried]
    assert [rule.origin for rule in result.contract.rules] == ["compared"]


def test_the_graph_refuses_what_was_not_compared(tmp_path) -> None:
    learned_path = tmp_path / "m.onnx"
    anyshape.export(Doubled(), rows, learned_path, strategy="generalized")
    import onnxruntime

    session = onnxruntime.InferenceSession(str(learned_path), providers=["CPUExecutionProvider"])
    session.run(None, {"x": torch.randn(4096, 4).numpy()})
    with pytest.raises(Exception, match="4096"):
        session.run(None, {"x": torch.randn(4097, 4).numpy()})


def test_a_declared_end_is_compared_instead() -> None:
    result = learned(where=["n <= 40000"])
    assert result.findings == ()
    assert {"n": 40000} in [dict(sizes) for sizes in result.verdict.tried]


def test_an_end_that_does_not_fit_is_an_error_that_names_the_largest_that_does() -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        learned(where=["n <= 100_000_000"])
    finding = caught.value.finding
    assert finding.code == "AS131"
    assert finding.fix == f'where=["n <= {finding.sizes["n"]}"]'


def test_the_largest_end_that_fits_is_written_with_consent() -> None:
    result = learned(where=["n <= 100_000_000"], accept_narrower=True)
    largest = result.contract.domain.dim("n").max
    assert result.is_kept and 1_000_000 < largest < 100_000_000
    assert {"n": largest} in [dict(sizes) for sizes in result.verdict.tried]


def test_a_proved_capture_keeps_its_open_range() -> None:
    result = anyshape.export(Plain(), rows)
    assert result.contract.tested.capture_proved
    assert result.contract.domain.dim("n").max is None and result.findings == ()


def test_every_size_that_was_proposed_is_compared_refused_or_left_out_with_a_reason(monkeypatch) -> None:
    from anyshape.exporting import attempts

    plans = []
    plan_comparisons = attempts.plan_comparisons

    def watched(*arguments):
        plans.append(plan_comparisons(*arguments))
        return plans[-1]

    monkeypatch.setattr(attempts, "plan_comparisons", watched)
    result = anyshape.export(
        Counted(),
        lambda n=3, m=4: torch.randn(n, m),
        where=["n <= 40000", "m <= 40000"],
        strategy="generalized",
        isolate=False,
    )
    plan = plans[-1]
    proposed = [*plan.sizes, *plan.once, *(each.sizes for each in plan.left_out)]
    verdict = result.verdict
    accounted = [*verdict.tried, *(each.sizes for each in verdict.refused), *(each.sizes for each in verdict.untried)]
    assert all(dict(sizes) in [dict(other) for other in accounted] for sizes in proposed)
    assert all(each.why for each in verdict.untried)
    assert {"n": 40000, "m": 40000} in [dict(each.sizes) for each in verdict.untried]
    assert result.contract.tested.untried == verdict.untried


def test_sizes_beyond_a_budget_of_work_are_left_out_by_name() -> None:
    result = learned(where=["n <= 40000"], budget=1e-6)
    assert {"n": 40000} in [dict(sizes) for sizes in result.verdict.tried]


def test_two_exports_of_one_model_have_the_same_bytes() -> None:
    first, second = (
        anyshape.export(Steps(), grid, where=["batch <= 4", "seq <= 20"]).model_proto.SerializeToString(
            deterministic=True
        )
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("model", [Steps(), Doubled()], ids=["loop", "flat"])
def test_the_estimated_work_is_continuous(model) -> None:
    inputs = grid if isinstance(model, Steps) else rows
    name = "seq" if isinstance(model, Steps) else "n"
    declared = declare(model, inputs)
    cost = costing(model, declared)
    works = [cost({**declared.example_sizes, name: size}) for size in range(1, 1100)]
    assert all(before <= after * 1.001 for before, after in itertools.pairwise(works))
    assert max(after / before for before, after in itertools.pairwise(works[5:])) < 1.6


def test_a_loop_of_some_hundred_steps_is_an_ordinary_comparison() -> None:
    declared = declare(Steps(), grid)
    cost = costing(Steps(), declared)
    assert cost({"batch": 2, "seq": 300}) <= CHEAP
    assert not cost.excess({"batch": 2, "seq": 4096})


def test_rules_of_the_domain_bound_the_extent() -> None:
    result = anyshape.export(
        Counted(),
        lambda n=3, m=4: torch.randn(n, m),
        where=["n + m <= 600"],
        strategy="generalized",
    )
    tried = [dict(sizes) for sizes in result.verdict.tried]
    assert {"n": 599, "m": 1} in tried and {"n": 1, "m": 599} in tried
    assert all(holds(relation, sizes) for relation in result.contract.domain.relations for sizes in tried)


class Square(nn.Module):
    """Has an integer that leaves 64 bits at some size, so that an open range gets an end (AS137)."""

    def forward(self, x):
        n = int(x.shape[1])
        side = math.isqrt(n)
        return x[:, : side * side].reshape(-1, side, side) * (n**5 % 7)


def test_an_end_that_only_overflow_gives_is_an_open_range() -> None:
    result = anyshape.export(Square(), grid)
    assert sorted({finding.code for finding in result.findings}) == ["AS132", "AS137"]
    assert [result.contract.domain.dim(name).max for name in ("batch", "seq")] == [4096, 4096]


def test_a_declared_end_beside_an_end_by_overflow_is_compared() -> None:
    result = anyshape.export(Square(), grid, where=["seq <= 6000"])
    assert result.contract.domain.dim("seq").max == 6000
    assert 6000 in [sizes["seq"] for sizes in result.verdict.tried]
