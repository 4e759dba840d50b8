"""A capture is not made again when more regions turn out to be needed, or when the domain becomes narrower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.capture import rungs, symbolic
from anyshape.domain import parse_condition
from anyshape.exporting import capture_attempts, pipeline
from anyshape.inputs import declare
from anyshape.records.explored import Lesson


class FourWays(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 5:
            x = x * 2
        if x.shape[1] > 7:
            x = x + 1
        return torch.tanh(x)


class Chunks(nn.Module):
    """Adds up chunks of 16; torch treats one chunk apart. Sizes that need no padding have an answer of their own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pad = (16 - x.shape[1] % 16) % 16
        chunks = nn.functional.pad(x, (0, 0, 0, 0, 0, pad)).reshape(x.shape[0], -1, 16, 4, 3)
        before = torch.cat([x[:, :1], chunks[:, :, -1]], 1)
        answer = torch.einsum("bzch,bzhp->bchp", chunks.sum(-1), before[:, :-1])
        return answer if pad > 0 else answer + 1


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[tuple[str, int], ...]]:
    """How often a capture was made, by its sizes."""
    captured: Counter[tuple[tuple[str, int], ...]] = Counter()
    capture = rungs.capture_symbolically

    def counted(module: Any, declared: Any, sizes: Mapping[str, int], *others: Any) -> Any:
        captured[tuple(sorted(sizes.items()))] += 1
        return capture(module, declared, sizes, *others)

    monkeypatch.setattr(rungs, "capture_symbolically", counted)
    return captured


def test_each_region_is_captured_once(captured: Counter[tuple[tuple[str, int], ...]]) -> None:
    result = anyshape.export(FourWays(), lambda batch=3, seq=4: torch.randn(batch, seq), isolate=False)
    assert result.strategy == "symbolic"
    assert len(result.regions) == len(captured) == 4
    assert sorted(captured.values()) == [1, 1, 1, 1]


def test_no_region_is_captured_with_one_chunk(captured: Counter[tuple[tuple[str, int], ...]]) -> None:
    where = ["batch <= 8", "seq <= 100"]
    result = anyshape.export(
        Chunks(), torch.randn(3, 5, 4, 3), dynamic={"x": "batch seq 4 3"}, where=where, isolate=False
    )
    assert result.strategy == "symbolic"
    assert len(result.regions) == 2
    first, second, third = (dict(sizes)["seq"] for sizes in captured)
    assert first <= 16 < second
    assert third in (32, 48, 64, 80, 96)


def test_rules_that_are_learned_again_need_no_further_capture_and_no_file_that_was_wrong(
    captured: Counter[tuple[tuple[str, int], ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    judge = capture_attempts.verify_capture

    def counted(capture: Any, context: Any) -> Any:
        judged.append(len(capture.regions))
        return judge(capture, context)

    monkeypatch.setattr(capture_attempts, "verify_capture", counted)
    monkeypatch.setattr(pipeline._TriedRungs, "lessons", property(lambda self: [Lesson({"batch": 5, "seq": 7})]))
    result = anyshape.export(FourWays(), lambda batch=3, seq=4: torch.randn(batch, seq), isolate=False)
    assert result.is_kept
    assert judged[0] == 1  # one program for all sizes, which was wrong
    assert judged[-2:] == [4, 4]
    assert judged.count(1) == 1


def test_a_narrower_domain_needs_no_other_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Mapping[str, int]] = []
    trace = symbolic.trace_symbolically

    def counted(module: nn.Module, declared: Any, sizes: Mapping[str, int]) -> Any:
        traced.append(sizes)
        return trace(module, declared, sizes)

    monkeypatch.setattr(symbolic, "trace_symbolically", counted)
    module, traces = FourWays(), symbolic.Traces()
    wide = declare(module, torch.randn(3, 4), dynamic={"x": "batch seq"})
    narrow = replace(wide, domain=wide.domain.narrowed(parse_condition("batch <= 5")))
    found = [
        symbolic.capture_symbolically(module, declared, {"batch": 3, "seq": 4}, lambda program: program, traces)
        for declared in (wide, narrow)
    ]
    statuses = [
        {str(guard.condition): guard.status for guard in each.guards} for each in found if not hasattr(each, "error")
    ]
    assert [each["batch <= 5"] for each in statuses] == ["refuted", "proved"]
    assert [each["seq <= 7"] for each in statuses] == ["refuted", "refuted"]
    assert len(traced) == 1
    other = FourWays()
    symbolic.capture_symbolically(other, wide, {"batch": 3, "seq": 4}, lambda program: program, traces)
    assert len(traced) == 2
