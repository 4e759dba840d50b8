"""What calls before the capture have shown of a dear model is not called for again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.exporting.constancy import make_constant, reuse_calls
from anyshape.exporting.context import Options
from anyshape.exporting.module_trials import KnownBefore, try_module
from anyshape.inputs import declare, flatten_outputs
from anyshape.verify import Answer, Reference, reference

EXAMPLE = 400


class Dear(nn.Module):
    def __init__(self, calls: Counter[int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 1024))
        self.note = calls.update  # a bound method is no state
        self.last = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.note([x.shape[0]])
        return x @ self.weight


class WritingAtExample(Dear):
    def forward(self, x: torch.Tensor) -> Any:
        self.last = EXAMPLE if x.shape[0] == EXAMPLE else self.last
        return super().forward(x)


class DrawingAtExample(Dear):
    def forward(self, x: torch.Tensor) -> Any:
        if x.shape[0] == EXAMPLE:
            torch.rand(())
        return super().forward(x)


def count_trials(kind: type[Dear], monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """The calls at each size after the model was found constant, until exploring ends."""
    monkeypatch.setattr(reference, "_LONG_S", 0.0)
    calls: Counter[int] = Counter()
    module = kind(calls)
    declared = declare(module, lambda n=EXAMPLE: {"x": torch.randn(n, 1024)}, where=["1 <= n <= 800"])
    constant = make_constant(module, declared, Options())
    assert constant.is_dear and calls[EXAMPLE] == 1
    calls.clear()
    with Reference(module, flatten_outputs) as expected:
        known = KnownBefore(constant.cost)
        for sizes in reuse_calls(constant, expected):
            known.note_answer(sizes)
        tried = try_module(module, declared, expected, Options(), (), known)
        assert {"n": EXAMPLE} in tried.explored.answered and {"n": 1} in tried.explored.answered
        assert expected.outputs_at_example(lambda: declared.make({"n": EXAMPLE}, 0)) == (("output", "float32"),)
    return calls


def test_neither_the_example_nor_the_constant_call_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_trials(Dear, monkeypatch)
    assert calls[EXAMPLE] == 0 and calls[1] == 0 and calls[800] == 1


@pytest.mark.parametrize("kind", [WritingAtExample, DrawingAtExample])
def test_a_call_of_the_example_that_leaves_traces_is_made_again(
    kind: type[Dear], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count_trials(kind, monkeypatch)[EXAMPLE] == 1


def test_the_kept_answer_is_that_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_LONG_S", 0.0)
    module = Dear(Counter())
    declared = declare(module, lambda n=EXAMPLE: {"x": torch.randn(n, 1024)}, where=["1 <= n <= 800"])
    constant = make_constant(module, declared, Options())
    with Reference(module, flatten_outputs) as expected:
        reuse_calls(constant, expected)
        inputs = declared.make({"n": 1}, 0)
        recalled, called = expected.recall(inputs), expected.run(inputs)
    assert isinstance(recalled, Answer) and isinstance(called, Answer)
    assert recalled.outputs == called.outputs and np.array_equal(recalled.arrays[0], called.arrays[0])
