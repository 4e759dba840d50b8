"""How often a module is called at a size while rules are learned again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.explore import cost_estimates
from anyshape.exporting import module_trials
from anyshape.exporting.calls_at_sizes import Outcomes, make_trial
from anyshape.exporting.context import Options
from anyshape.exporting.module_trials import Tried, try_module
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


class Padded(nn.Module):
    """Positions are counted without the padding token 1: `rows - 2` tokens other than that have a row of the table."""

    def __init__(self, rows: int, width: int = 4) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(20, width), nn.Embedding(rows, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        counted = ids.ne(1).long()
        return self.tokens(ids) + self.positions(counted.cumsum(1) * counted + 1)


def try_padded(module: nn.Module, ids: torch.Tensor, **values: Any) -> Tried:
    declared = declare(module, ids, dynamic={"ids": "batch seq"}, **values)
    with Reference(module, flatten_outputs) as reference:
        return try_module(module, declared, reference, Options())


def test_values_that_are_inside_the_learned_bounds_and_refused_show_at_once_that_values_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explored: list[Any] = []
    own = module_trials.explore
    monkeypatch.setattr(
        module_trials, "explore", lambda *args, **kwargs: (explored.append(found := own(*args, **kwargs)), found)[1]
    )
    tried = try_padded(Padded(62), torch.tensor([[5, 17, 9, 6, 12, 19, 8], [11, 5, 18, 7, 13, 16, 6]]))
    assert tried.values == {"ids": "0 <= ids <= 19"}
    assert [str(rule.condition) for rule in tried.explored.rules] == ["seq <= 60"]
    assert len(explored) == 2  # under the declaration, and with several draws inside the bounds


def test_other_integers_are_tried_at_an_end_where_calls_are_not_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_estimates, "CHEAP", 10_000)
    tried = try_padded(Padded(402, 64), torch.tensor([[0, 7, 19]]), values={"ids": "0 <= ids <= 19"})
    assert not tried.cost.is_dear
    assert tried.cost({"batch": 1, "seq": 400}) > tried.cost.cheap
    assert [str(rule.condition) for rule in tried.explored.rules] == ["seq <= 400"]
