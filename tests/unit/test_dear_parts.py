"""A part of the domain in which calls take long: the module is called there at the smallest sizes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from anyshape.capture.rungs import METHODS, CaptureContext
from anyshape.inputs import declare
from anyshape.records.captured import Captured
from anyshape.translate.registry import Translator


class FarBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] > 100 else x + 1


def _capture(
    called: list[Mapping[str, int]],
    refused: Mapping[str, int] | None = None,
    is_dear: Callable[[Mapping[str, int]], bool] = lambda sizes: sizes["n"] > 50,
) -> Captured:
    module = FarBranch()
    declared = declare(module, lambda batch=3, n=5: {"x": torch.randn(batch, n)})

    def answers(sizes: Mapping[str, int]) -> bool:
        called.append(dict(sizes))
        return sizes != refused

    context = CaptureContext(module, declared, answers, Translator().decompose, is_dear=is_dear)
    captured = METHODS[0].capture(context, ())
    context.captures.clear()
    called.append({"n": 0})  # what follows are calls of the second capture
    assert METHODS[0].capture(context, ()).regions[1].traced_at == captured.regions[1].traced_at
    return captured


def test_the_module_is_called_at_the_smallest_sizes_of_a_dear_part() -> None:
    called: list[Mapping[str, int]] = []
    captured = _capture(called)
    assert [str(region.condition) for region in captured.regions] == ["n <= 100", "n > 100"]
    assert captured.regions[1].traced_at["batch"] > 1
    assert [sizes for sizes in called if sizes["n"] > 100] == [{"batch": 1, "n": 101}]
    assert called[-1]["n"] <= 100  # the sizes of a trace that is there are not called again


def test_where_these_are_refused_it_is_called_at_the_sizes_of_the_capture() -> None:
    called: list[Mapping[str, int]] = []
    captured = _capture(called, {"batch": 1, "n": 101})
    assert captured.regions[1].traced_at in called


def test_a_part_that_is_not_dear_is_called_where_it_is_captured() -> None:
    called: list[Mapping[str, int]] = []
    captured = _capture(called, is_dear=lambda sizes: False)
    assert captured.regions[1].traced_at in called
    assert {"batch": 1, "n": 101} not in called
