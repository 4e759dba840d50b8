"""A size inside the program that equals a number at the traced sizes alone: the model is captured at other sizes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, cast

import pytest
import torch
from torch import nn

from anyshape.capture.generalized.record import Recorder
from anyshape.capture.rerolled.growth import find_growing
from anyshape.capture.symbolic import Stopped
from anyshape.capture.trace_sizes import without_accidents
from anyshape.domain import parse_condition
from anyshape.inputs import declare
from anyshape.records.captured import Captured, Guard, Region


class Chunked(nn.Module):
    """Sums over chunks of 16; with one chunk, the running sum of the chunks broadcasts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(x, (0, (16 - x.shape[1] % 16) % 16))
        chunks = padded.reshape(x.shape[0], -1, 16)
        before = torch.cumsum(chunks.sum(-1, keepdim=True), 1).expand(-1, chunks.shape[1], -1)
        return torch.matmul(before.transpose(1, 2), chunks)


class Stepwise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[:, 0]
        for step in range(1, x.shape[1]):
            total = torch.tanh(total + x[:, step])
        return total


def captured(traced_at: Mapping[str, int], *conditions: str, by_user: bool = False) -> Captured:
    guards = tuple(Guard(parse_condition(each), each, None, by_user, "refuted") for each in conditions)
    return Captured("symbolic", (Region(cast(Any, None), {}, guards, traced_at),), ())


CHUNKS = declare(Chunked(), torch.randn(3, 5), dynamic={"x": "batch seq"})
ONE_CHUNK = captured({"batch": 3, "seq": 5}, "(seq + 15) // 16 == 1", "batch != 1")
MORE_CHUNKS = captured({"batch": 3, "seq": 17}, "(seq + 15) // 16 != 1", "batch != 1")


def test_a_program_for_one_chunk_is_captured_again_with_more() -> None:
    traced: list[Mapping[str, int]] = []
    found = without_accidents(ONE_CHUNK, CHUNKS, lambda sizes: traced.append(sizes) or MORE_CHUNKS, lambda sizes: True)
    assert found is MORE_CHUNKS
    assert len(traced) == 1
    assert traced[0]["seq"] > 16


@pytest.mark.parametrize("other", [ONE_CHUNK, Stopped(RuntimeError("refused"))])
def test_the_first_program_is_kept_where_another_is_no_better(other: Captured | Stopped) -> None:
    assert without_accidents(ONE_CHUNK, CHUNKS, lambda sizes: other, lambda sizes: True) is ONE_CHUNK


@pytest.mark.parametrize(
    "first",
    [
        captured({"batch": 3, "seq": 5}, "seq == 5"),
        captured({"batch": 3, "seq": 5}, "(seq + 15) // 16 == 1", by_user=True),
        captured({"batch": 3, "seq": 5}, "seq // 2 == batch - 1"),
        MORE_CHUNKS,
    ],
)
def test_loops_and_conditions_of_the_user_are_not_captured_again(first: Captured) -> None:
    def capture(sizes: Mapping[str, int]) -> Captured:
        raise AssertionError("captured again")

    assert without_accidents(first, CHUNKS, capture, lambda sizes: True) is first


@pytest.mark.parametrize(("module", "growing", "traces"), [(Chunked(), None, 0), (Stepwise(), "seq", 4)])
def test_traces_are_made_only_where_calls_run_more_operators(
    module: nn.Module, growing: str | None, traces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = itertools.count()
    record = Recorder._record
    monkeypatch.setattr(Recorder, "_record", lambda self, sizes: (next(made), record(self, sizes))[1])
    declared = declare(module, torch.randn(3, 5), dynamic={"x": "batch seq"})
    assert find_growing(Recorder(module, declared), declared, lambda sizes: True, ["seq"]) == growing
    assert next(made) == traces
