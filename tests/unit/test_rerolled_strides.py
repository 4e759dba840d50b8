"""Loops that take a dim in parts: their stride is found, and they are right at any number of parts and beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.learned import answering, learn
from torch import nn
from torch.nn import functional as F

from anyshape.capture.generalized.record import Recorder
from anyshape.capture.regions import EndlessRegions
from anyshape.capture.rerolled import find_stride
from anyshape.capture.rerolled.functional import find_write, without_writes
from anyshape.capture.rungs import METHODS, CaptureContext
from anyshape.domain import parse_condition
from anyshape.inputs import Declared, declare
from anyshape.records.captured import Captured

_SIZES = [{"batch": batch, "seq": seq} for batch in (1, 3) for seq in (1, 2, 63, 64, 65, 128, 129, 300, 641)]


def _inputs(batch: int = 2, seq: int = 3) -> tuple[torch.Tensor]:
    return (torch.randn(batch, seq, 4),)


class Chunked(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, seq, width = x.shape
        if seq == 1:
            return x * 2, x[:, 0].tanh()
        padding = (64 - seq % 64) % 64
        chunks = F.pad(x, (0, 0, 0, padding)).reshape(batch, -1, 64, width)
        state, out = torch.zeros(batch, width), torch.zeros_like(chunks)
        for part in range((seq + padding) // 64):
            out[:, part] = chunks[:, part] + state[:, None]
            state = state * 0.5 + chunks[:, part].sum(1).tanh()
        return out.reshape(batch, -1, width)[:, :seq], state


class NoLoop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (0, 0, 0, -x.shape[1] % 64)).reshape(x.shape[0], -1, 64, x.shape[2]).sum(2)


@pytest.mark.parametrize(("model", "stride"), [(Chunked, 64), (NoLoop, None)])
def test_a_stride_is_how_much_a_dim_grows_for_one_more_step(model: type[nn.Module], stride: int | None) -> None:
    declared = declare(model(), _inputs)
    recorder = Recorder(model(), declared)
    conditions = [parse_condition("batch == 2"), parse_condition("(seq + 63) // 64 == 1")]
    found = find_stride(recorder, declared, answering(model(), declared), conditions)
    assert (found[:2] if found is not None else None) == (("seq", stride) if stride is not None else None)


def test_a_loop_over_parts_is_right_at_any_number_of_parts_and_beside_the_loop() -> None:
    def rung(
        module: nn.Module, declared: Declared, answers: Callable[..., bool], decompose: Callable[..., Any]
    ) -> Captured:
        symbolic, _, rerolled = METHODS
        context = CaptureContext(module, declared, answers, decompose)
        with pytest.raises(EndlessRegions):
            symbolic.capture(context, ())
        assert len(context.captures) == 1  # one program is enough to see the loop
        return rerolled.capture(context, ())

    learned = learn(rung, Chunked(), _inputs)
    assert len(learned.captured.regions) == 2
    assert learned.differences(_SIZES) == []


class Copied(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, -2:].contiguous() + 1


def test_a_trace_has_a_copy_at_sizes_that_need_none_too() -> None:
    recorder = Recorder(Copied(), declare(Copied(), _inputs))
    lengths = {len(recorder.trace({"batch": batch, "seq": 3}).steps) for batch in (1, 2)}
    assert len(lengths) == 1


class WritesIntoTopk(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values, _ = x.topk(2, dim=-1)
        values /= values.sum(-1, keepdim=True)
        return values * 2


class WritesIntoCopy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = x * 2
        table[:, -2:].contiguous().add_(1)
        return table


@pytest.mark.parametrize(("model", "is_written"), [(WritesIntoTopk, False), (WritesIntoCopy, True)])
def test_only_writes_into_new_tensors_are_replaced(model: type[nn.Module], is_written: bool) -> None:
    trace = Recorder(model(), declare(model(), _inputs)).trace({"batch": 2, "seq": 3})
    assert (find_write(without_writes(trace)) is not None) == is_written
