"""Rules that no grammar has come from a capture: its guards, and the tables that its program reads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from anyshape.capture import guard_candidates
from anyshape.capture.guard_candidates import CapturedOnce, find_candidates
from anyshape.inputs import declare


class PairsOfSteps(nn.Module):
    """A convolution of stride 3 gives n // 3 steps, which have to be even."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, stride=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        return x.view(x.shape[0], 2, x.shape[2] // 2, 2).amax(-1)


class Groups(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, 4)


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(36, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = F.avg_pool2d(x, 4).flatten(2).transpose(1, 2)
        return tokens + self.positions(1 + torch.arange(tokens.shape[1]))


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x


@pytest.mark.parametrize(
    ("module", "x", "words", "rules"),
    [
        (PairsOfSteps(), torch.randn(2, 2, 12), "b 2 n", {"n//3 == 2*(n//6)", "n >= 3"}),
        (Groups(), torch.randn(2, 8, 6), "b c n", {"c % 4 == 0", "b*n*(c//4) != 1"}),
        (Patches(), torch.randn(2, 2, 12, 16), "b 2 h w", {"h//4*(w//4) <= 35", "h >= 4", "w >= 4"}),
    ],
)
def test_a_rule_that_the_grammar_lacks_is_learned(
    module: nn.Module, x: torch.Tensor, words: str, rules: set[str]
) -> None:
    with pytest.warns(anyshape.NarrowedWarning):
        result = anyshape.export(module, x, dynamic={"x": words})
    assert result.is_kept
    assert {str(rule.condition) for rule in result.contract.rules} == rules
    assert all(rule.origin == "found by trying" for rule in result.contract.rules)


def test_a_module_that_torch_cannot_follow_has_no_candidates() -> None:
    declared = declare(Written(), torch.randn(3), dynamic={"x": "n"})
    assert list(find_candidates(Written(), declared, CapturedOnce(), [{"n": 5}])) == []


def test_a_rule_of_the_captured_program_needs_no_capture_at_refused_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("captured at refused sizes")

    monkeypatch.setattr(guard_candidates, "find_raising_regions", refuse)
    with pytest.warns(anyshape.NarrowedWarning):
        result = anyshape.export(PairsOfSteps(), torch.randn(2, 2, 12), dynamic={"x": "b 2 n"})
    assert {str(rule.condition) for rule in result.contract.rules} == {"n//3 == 2*(n//6)", "n >= 3"}


def test_the_program_that_shows_a_rule_is_the_one_that_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    exported: list[tuple[int, ...]] = []
    own = torch.export.export

    def export(module: nn.Module, args: tuple[Any, ...], **kwargs: Any) -> Any:
        exported.append(tuple(args[0].shape))
        return own(module, args, **kwargs)

    monkeypatch.setattr(torch.export, "export", export)
    with pytest.warns(anyshape.NarrowedWarning):
        result = anyshape.export(Patches(), torch.randn(3, 2, 12, 16), dynamic={"x": "b 2 h w"}, isolate=False)
    assert result.is_kept
    assert exported.count((3, 2, 12, 16)) == 1


class BestPositions(nn.Module):
    """The six best positions of a map with a quarter of the picture's height and width."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 4).flatten(2).topk(6).values


def test_a_choice_needs_as_many_positions_as_are_chosen() -> None:
    declared = declare(BestPositions(), torch.randn(2, 2, 12, 16), dynamic={"x": "b 2 h w"})
    conditions = next(iter(find_candidates(BestPositions(), declared, CapturedOnce(), [])))
    assert "h//4*(w//4) >= 6" in set(map(str, conditions))


class PositionsByMask(nn.Module):
    """As OPT: positions are counted in the mask, so that the table is too short by values, which torch.export does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, mask: torch.Tensor) -> torch.Tensor:
        return self.table(mask.cumsum(1) * mask)


def test_refused_sizes_at_which_the_same_program_runs_are_not_captured() -> None:
    declared = declare(PositionsByMask(), torch.ones(2, 5, dtype=torch.int64), dynamic={"mask": "b n"})
    known = CapturedOnce()
    list(find_candidates(PositionsByMask(), declared, known, [{"b": 2, "n": 20}, {"b": 3, "n": 40}]))
    assert list(known.traces) == [(("b", 2), ("n", 5))]
