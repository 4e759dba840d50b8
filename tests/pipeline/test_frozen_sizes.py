"""Operators in which torch freezes a size: later conditions on that size must not be lost, and no output axis may be untrue."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from anyshape.capture import failing_sizes
from anyshape.capture.guards import decide_guards
from anyshape.domain import All, AnyOf, Compare, Dim, Domain, Number, Ref
from anyshape.leaves import open_splits
from anyshape.records.captured import Captured, Guard, Region


class BranchBesidePooling(nn.Module):
    """The branch is behind the operator, at a length that is far from the example's."""

    def forward(self, x):
        pooled_rows = F.max_pool1d(x, 2)
        return -pooled_rows if x.shape[-1] > 2037 else pooled_rows


def inputs(batch=2, length=11):
    return torch.randn(batch, 2, length)


@pytest.fixture
def torchs_own_pooling(monkeypatch: pytest.MonkeyPatch) -> None:
    """max_pool1d as torch captures it, with a plain int for the length."""
    ours = open_splits._of_pooling

    def without_max_pool1d():
        return {name: value for name, value in ours().items() if name not in (F.max_pool1d, torch.max_pool1d)}

    monkeypatch.setattr(open_splits, "_of_pooling", without_max_pool1d)


def test_the_length_of_max_pool1d_stays_open(tmp_path) -> None:
    result = anyshape.export(BranchBesidePooling(), inputs, tmp_path / "m.onnx")
    assert result.strategy == "symbolic" and str(result.contract.outputs[0]) == "output: float32[batch, 2, length//2]"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for length in (2, 11, 2037, 2038, 5001):
        x = inputs(3, length)
        assert torch.equal(torch.as_tensor(loaded(x)), BranchBesidePooling()(x))


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 3},
        {"padding": 1},
        {"dilation": 2},
        {"ceil_mode": True, "stride": 3},
        {"stride": (1,), "padding": (1,)},
    ],
    ids=str,
)
def test_every_option_of_max_pool1d(options, tmp_path) -> None:
    model = nn.MaxPool1d(2, **options).eval()
    anyshape.export(model, inputs, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for length in (4, 9, 100):
        x = inputs(3, length)
        assert torch.equal(torch.as_tensor(loaded(x)), model(x))


def test_a_branch_behind_a_frozen_size_is_not_lost(torchs_own_pooling, tmp_path) -> None:
    anyshape.export(BranchBesidePooling(), inputs, tmp_path / "m.onnx", where=["2 <= length <= 4096"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    for length in (11, 2037, 2038, 4001):
        x = inputs(1, length)
        assert torch.equal(torch.as_tensor(loaded(x)), BranchBesidePooling()(x))


def test_no_output_axis_has_a_frozen_size(torchs_own_pooling) -> None:
    result = anyshape.export(nn.MaxPool1d(2).eval(), inputs)
    axis = result.contract.outputs[0].axes[-1]
    assert axis is None or str(axis) == "length//2"


@pytest.mark.parametrize(
    ("condition", "is_whole"),
    [
        (Compare("!=", Ref("n"), Number(7)), True),
        (Compare(">=", Ref("n") + Ref("past"), Number(3)), True),
        (AnyOf((Compare("!=", Ref("n"), Number(7)), Compare("==", Ref("n"), Ref("past")))), True),
        (All((Compare("!=", Ref("n"), Number(7)), Compare("==", Ref("n"), Ref("past")))), False),
        (Compare("==", Ref("n"), Number(11)), False),
        (Compare("==", Ref("n"), Ref("past") + Number(9)), False),
        (Compare("<=", Ref("n"), Number(512)), False),
        (Compare(">=", Ref("n"), Number(16)), False),
        (Compare(">=", Ref("n") // 32 + Number(1), Number(2)), True),
        (Compare(">", Ref("n") // 32 + Number(1), Number(1)), True),
        (Compare(">=", Ref("n") // 32 + Number(1), Number(3)), False),
        (Compare(">=", Ref("n") - Number(40), Number(1)), False),
    ],
    ids=str,
)
def test_a_capture_has_no_hidden_branch_where_its_conditions_fail_at_few_sizes(condition, is_whole) -> None:
    domain = Domain((Dim("n"), Dim("past", max=2)))
    (guard,) = decide_guards([Guard(condition, "", None, by_user=False)], domain)
    assert guard.status == "refuted"
    region = Region(program=None, symbols={}, guards=(guard,), traced_at={"n": 11})  # type: ignore[arg-type]
    assert Captured("symbolic", (region,), ()).has_no_hidden_branch is is_whole


def test_where_a_condition_fails_at_many_sizes_the_others_need_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    fails_small = failing_sizes._fails_small
    monkeypatch.setattr(failing_sizes, "_fails_small", lambda *each: asked.append(each) or fails_small(*each))
    conditions = [Compare("==", Ref("n"), Number(size)) for size in (11, 12, 13)]
    found = decide_guards([Guard(each, "", None, by_user=False) for each in conditions], Domain((Dim("n"),)))
    assert [guard.status for guard in found] == ["refuted"] * 3
    assert not any(guard.has_few_failures for guard in found)
    assert len(asked) == 1


ONE_WINDOW = Compare(">=", Ref("n") // 32 + Number(1), Number(2))


@pytest.mark.parametrize(
    ("condition", "is_few"),
    [
        (Compare(">=", Ref("n"), Number(32)), True),
        (Compare("==", (Ref("n") + Number(7)) // 8, 4 * ((Ref("n") + Number(31)) // 32)), True),
        (Compare(">=", Ref("n"), Number(33)), False),
        (Compare("==", Ref("n") % Number(32), Number(0)), False),
    ],
    ids=str,
)
def test_a_condition_fails_at_few_sizes_where_it_fails_only_together_with_one_that_does(condition, is_few) -> None:
    eighths, windows = (Ref("n") + Number(7)) // 8, (Ref("n") + Number(31)) // 32
    fused = AnyOf((Compare("==", eighths, 4 * windows), Compare("==", eighths, Number(1))))
    asked = [Guard(each, "", None, by_user=False) for each in (condition, ONE_WINDOW)]
    found, known = decide_guards(asked, Domain((Dim("n"),), (fused,)))
    assert found.status == known.status == "refuted"
    assert known.has_few_failures and found.has_few_failures is is_few


def test_a_condition_that_holds_nowhere_shows_nothing_about_others() -> None:
    asked = [Guard(each, "", None, by_user=False) for each in (ONE_WINDOW, Compare("==", Ref("n"), Number(11)))]
    assert not decide_guards(asked, Domain((Dim("n", max=20),)))[1].has_few_failures


def test_a_condition_fails_at_few_sizes_where_it_fails_only_at_sizes_that_broadcast() -> None:
    quarters, windows = (Ref("n") + Number(3)) // 4, (Ref("n") + Number(31)) // 32
    as_wide = Compare("==", quarters, 8 * windows)
    halves = Compare("==", (Ref("n") + Number(15)) // 16, 2 * windows)
    for apart, is_few in ((Number(1), True), (Number(6), False)):
        domain = Domain((Dim("n"),), (AnyOf((as_wide, Compare("==", quarters, apart))),))
        found = decide_guards([Guard(each, "", None, by_user=False) for each in (as_wide, halves)], domain)
        assert found[0].status == "refuted" and found[0].has_few_failures is is_few
        assert not is_few or (found[1].status == "refuted" and found[1].has_few_failures)
