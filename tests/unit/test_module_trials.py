"""How often a module is called at a size while rules are learned again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.exporting.context import Options
from anyshape.exporting.module_trials import Outcomes, make_trial, try_module
from anyshape.inputs import declare, flatten_outputs
from anyshape.records.explored import Lesson
from anyshape.verify import Reference


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 2).sum(1)


@pytest.mark.parametrize(("x", "most"), [(torch.randn(6), 1), (torch.randint(9, (6,)), 6)])
def test_a_refusal_of_a_size_is_tried_with_several_draws_of_integers_only(
    x: torch.Tensor, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: Counter[int] = Counter()
    recall = Reference.recall

    def counted(self: Reference, inputs: Any) -> Any:
        called[inputs.args[0].numel()] += 1
        return recall(self, inputs)

    module = Pairs()
    declared = declare(module, x, dynamic={"x": "n"})
    with Reference(module, flatten_outputs) as reference:
        reference.outputs_at_example(lambda: declared.make(declared.example_sizes, 0))
        monkeypatch.setattr(Reference, "recall", counted)
        tried = try_module(module, declared, reference, Options(), [Lesson({"n": 7})])
    assert [str(rule.condition) for rule in tried.explored.rules] == ["n % 2 == 0"]
    assert called[8] == most


class Costs:
    """Calls at more than 10 elements are dear."""

    cheap = 10

    def __init__(self, *, is_thorough: bool = False) -> None:
        self.is_thorough = is_thorough

    def __call__(self, sizes: Any) -> int:
        return sum(sizes.values())


@pytest.mark.parametrize(("n", "is_thorough", "calls"), [(8, False, 6), (12, False, 2), (12, True, 6)])
def test_at_sizes_of_dear_calls_one_draw_of_integers_is_tried(n: int, is_thorough: bool, calls: int) -> None:
    module = Pairs()
    declared = declare(module, torch.randint(9, (6,)), dynamic={"x": "n"})
    with Reference(module, flatten_outputs) as reference:
        called: list[Any] = []
        recall = reference.recall
        reference.outputs_at_example(lambda: declared.make(declared.example_sizes, 0))
        reference.recall = lambda inputs: (called.append(inputs), recall(inputs))[1]  # type: ignore[method-assign,func-returns-value]
        cost: Any = Costs(is_thorough=is_thorough)
        assert make_trial(declared, reference, draws=3, cost=cost)({"n": n}) is None
    assert len(called) == calls


@pytest.mark.parametrize(("n", "calls"), [(8, 5), (7, 0)])
def test_the_first_of_several_draws_is_not_tried_again(n: int, calls: int) -> None:
    module = Pairs()
    declared = declare(module, torch.randint(9, (6,)), dynamic={"x": "n"})
    with Reference(module, flatten_outputs) as reference:
        called: list[Any] = []
        recall = reference.recall
        reference.outputs_at_example(lambda: declared.make(declared.example_sizes, 0))
        known: Outcomes = {}
        single = make_trial(declared, reference, known=known)({"n": n})
        reference.recall = lambda inputs: (called.append(inputs), recall(inputs))[1]  # type: ignore[method-assign,func-returns-value]
        assert make_trial(declared, reference, draws=3, known=known)({"n": n}) is single
    assert len(called) == calls
