"""Every fix that is a rule, an option or an edit is tried by an export under it before it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.contract import find_contract
from anyshape.exporting.context import Options
from anyshape.exporting.fix_trials import Exporting, try_fixes
from anyshape.findings import DeclarationError, Finding, PromiseBroken, Reason, Remedy
from anyshape.inputs import declare
from anyshape.modules.call_limits import OutOfTime, TimeLimit

FIX = Finding(
    code="AS103",
    name="promise-not-kept",
    reason=Reason.ANSWERS_ON_LESS,
    about=("n <= 16",),
    what="you promise n 1..64.",
    fix="where=['n <= 16']",
    remedy=Remedy(where=("n <= 16",)),
    is_fix_untried=True,
    alternative="change the line.",
)
OTHER = Finding(code="AS305", name="wrong-values", what="output differs.")


def kept() -> Any:
    return SimpleNamespace(findings=())


def broken(*findings: Finding) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise PromiseBroken(*findings)

    return raise_it


def ends(error: BaseException) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise error

    return raise_it


@dataclass
class Runs:
    """An export whose outcome is given; keeps what it was given."""

    outcome: Callable[[], Any]
    given: list[Any] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)

    def tell(self, stage: str, done: int, total: int) -> None:
        self.stages.append(stage)

    def __call__(self, module: Any, declared: Any, options: Any) -> Any:
        self.given.append((module, declared, options))
        return self.outcome()


def told(outcome: Callable[[], Any], *findings: Finding, example: int = 3, seconds: float = 60) -> tuple[str, Runs]:
    """What the error says after the trial, and what was run."""
    runs = Runs(outcome)
    module = nn.Linear(10, 5)
    declared = declare(module, torch.randn(example, 10), dynamic={"input": "n 10"})
    error = PromiseBroken(*(findings or (FIX,)))
    with TimeLimit(seconds) as limit:
        try_fixes(error, Exporting(module, declared, Options(force=True), runs, runs.tell, limit))
    return str(error), runs


def test_a_fix_under_which_the_export_is_kept_is_shown() -> None:
    text, runs = told(kept)
    assert "  Fix:    where=['n <= 16']\n" in text
    ((_, declared, options),) = runs.given
    assert declared.domain.dim("n").max == 16
    assert not options.force
    assert runs.stages == ["trying the fix"]


def test_a_fix_after_which_the_finding_comes_again_is_not_shown() -> None:
    text, _ = told(broken(replace(FIX, what="you promise n 1..16.", about=("n % 2 == 0",), remedy=None)))
    assert "n <= 16'" not in text
    assert "  Fix (not tried): change the line." in text


def test_a_fix_after_which_another_finding_comes_is_shown_with_it() -> None:
    text, _ = told(broken(OTHER))
    assert "  Fix:    where=['n <= 16']\n" in text
    assert "that is not enough: next is AS305 wrong-values: output differs." in text


@pytest.mark.parametrize("error", [OutOfTime(), RuntimeError("out of memory")])
def test_a_fix_whose_trial_does_not_end_is_shown_as_not_tried(error: BaseException) -> None:
    text, _ = told(ends(error))
    assert "  Fix (not tried): where=['n <= 16']\n" in text


def test_a_refusal_that_came_late_tells_nothing_about_the_fix() -> None:
    def late() -> Any:
        time.sleep(0.7)
        raise PromiseBroken(OTHER)

    text, _ = told(late, seconds=1)
    assert "  Fix (not tried): where=['n <= 16']\n" in text and "AS305" not in text


@pytest.mark.parametrize(("took", "allowed"), [(1, 30), (20, 80), (1000, 600)])
def test_a_trial_ends_some_times_after_the_export_did(took: float, allowed: float) -> None:
    with TimeLimit(600) as limit:
        exporting = Exporting(nn.ReLU(), None, Options(), Runs(kept), print, limit, took)  # type: ignore[arg-type]
        with limit.part(exporting.share) as seconds:
            assert seconds == pytest.approx(allowed, rel=0.01)


def test_a_trial_without_a_time_limit_has_none() -> None:
    with TimeLimit() as limit:
        assert Exporting(nn.ReLU(), None, Options(), Runs(kept), print, limit).share == 1.0  # type: ignore[arg-type]


def test_findings_without_a_remedy_are_not_tried() -> None:
    text, runs = told(kept, OTHER)
    assert runs.given == [] and "Fix" not in text


def test_several_fixes_are_tried_together_and_one_fails_alone() -> None:
    second = Finding(
        code="AS102",
        name="size-baked-in",
        reason=Reason.ANSWERS_AT_ONE_SIZE,
        about=("m",),
        what="dim 'm'.",
        fix="state='outputs'",
        remedy=Remedy(options=(("state", "outputs"),)),
        is_fix_untried=True,
    )
    text, runs = told(broken(replace(second, what="dim 'm', other words.", remedy=None)), FIX, second)
    ((_, declared, options),) = runs.given
    assert options.state == "outputs" and declared.domain.dim("n").max == 16
    assert "  Fix:    where=['n <= 16']\n" in text
    assert "state='outputs'" not in text


def test_a_rule_that_excludes_the_example_is_not_enough() -> None:
    text, runs = told(kept, example=20)
    assert runs.given == []
    assert "that is not enough: next is AS025 example-outside-domain: " in text


def test_a_rule_that_cannot_be_read_is_not_enough() -> None:
    unreadable = Finding(**{**vars(FIX), "remedy": Remedy(where=("m <= 16",))})
    text, _ = told(ends(DeclarationError(OTHER)), unreadable)
    assert "that is not enough: next is AS001 unknown-dim: there is no dim 'm'." in text


class Baked(nn.Module):
    """The edit of its first line is right, and its second line needs 3 rows all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table + x.view(3, 10)


class Both(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.zeros(3, 10)


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])


def refusal(module: nn.Module, inputs: Any, **options: Any) -> PromiseBroken:
    with pytest.raises(PromiseBroken) as caught:
        anyshape.export(module, inputs, **options)
    return caught.value


def test_an_edit_that_does_not_help_is_not_shown() -> None:
    error = refusal(Baked(), lambda batch=3: torch.randn(batch, 10))
    assert error.finding.code == "AS102"
    assert "x.view(x.shape[0], 10)" not in str(error)
    assert "  Fix:    let all that the line above uses follow batch: something in it fits batch = 3 only." in str(error)


def test_a_part_of_a_table_is_an_edit_that_is_tried() -> None:
    error = refusal(Positions(), lambda seq=16: torch.randn(2, seq, 8))
    assert error.finding.fix == "return x + self.table[: x.shape[1]]"
    assert not error.finding.is_fix_untried
    error = refusal(Positions(), lambda seq=16: torch.randn(2, seq, 8), where=["seq <= 64"])
    assert "self.table[: x.shape[1]]\n          that is not enough: next is AS103 " in str(error)


def test_an_edit_that_frees_two_dims_is_one_line() -> None:
    error = refusal(Both(), lambda batch=3, width=10: torch.randn(batch, width))
    assert [finding.fix for finding in error.findings] == ["return x + torch.zeros(x.shape[0], x.shape[1])"] * 2
    assert not any(finding.is_fix_untried for finding in error.findings)


def test_the_true_name_of_an_axis_needs_neither_another_rung_nor_another_export() -> None:
    stages: list[str] = []
    with pytest.raises(PromiseBroken) as caught:
        anyshape.export(
            Twice(),
            torch.randn(3, 10),
            dynamic={"x": "n 10", "y": {0: "n"}},
            output_names=["y"],
            progress=lambda stage, done, total: stages.append(stage),
        )
    assert caught.value.finding.fix == "{'y': {0: '2*n'}}"
    assert not caught.value.finding.is_fix_untried
    assert [attempt.strategy for attempt in caught.value.attempts] == ["symbolic"]
    assert "trying the fix" not in stages


def test_a_fix_that_was_forced_past_is_shown_as_not_tried() -> None:
    result = anyshape.export(
        Twice(), torch.randn(3, 10), dynamic={"x": "n 10", "y": {0: "n"}}, output_names=["y"], force=True
    )
    (finding,) = [finding for finding in result.findings if finding.code == "AS112"]
    assert "  Fix (not tried): {'y': {0: '2*n'}}" in str(finding)
    contract = find_contract(result.model)
    assert contract is not None and "  Fix (not tried): " in str(contract.findings[0])
