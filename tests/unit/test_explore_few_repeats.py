"""Two or three calls show whether a dear model is constant; where they do not, the usual ones are made."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.explore import observe_repeats
from anyshape.exporting.constancy import observe_calls
from anyshape.inputs import declare, flatten_outputs
from anyshape.intercept.replay import Replay, Reply
from anyshape.modules.slots import changed_slots, read_slots


class Plain(nn.Module):
    def __init__(self, calls: list[int]) -> None:
        super().__init__()
        self.note = calls.append  # a bound method is no state

    def forward(self, x: torch.Tensor) -> Any:
        self.note(1)
        return torch.tanh(x)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> Any:
        self.count += 1
        return x * self.count


class Silent(nn.Module):
    """Writes what changes no answer before the tenth call."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.count += 1
        return x + (self.count > 9)


class Random(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x + torch.rand(())


class Ticking(nn.Module):
    """Keeps its memory in an object that cannot be looked into or put back."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks = itertools.count(1)

    def forward(self, x: torch.Tensor) -> Any:
        return x * next(self.ticks)


POINTS = [{"n": 1}, {"n": 3}]


def observe(module: nn.Module, **more: Any) -> Any:
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)}, where=["1 <= n <= 9"])
    return observe_repeats(module, declared, POINTS, **more)


def test_a_constant_model_is_called_twice() -> None:
    calls: list[int] = []
    found = observe(Plain(calls), few=True)
    assert len(calls) == 2
    assert not (found.random or found.has_memory or found.unsteady)


class Dropping(Plain):
    """Draws a number at each call, and looks at it in training only, as layers that are dropped do."""

    def forward(self, x: torch.Tensor) -> Any:
        chance = torch.rand(())
        return x if self.training and chance < 0.1 else super().forward(x)


def test_a_model_that_draws_numbers_without_need_is_called_three_times() -> None:
    calls: list[int] = []
    module = Dropping(calls)
    found = observe(module, few=True)
    assert len(calls) == 3
    assert not (found.random or found.has_memory or found.unsteady)
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)})
    calls.clear()
    assert not observe_calls(module, declared, (), [declared.make({"n": 2}, 0)], few=True).random
    assert len(calls) == 3


class RarelyRandom(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x + (1 if torch.rand(()) < 1e-6 or (x.shape[0] == 2 and torch.rand(()) < 0.5) else 0)


def test_few_calls_of_noted_inputs_show_what_many_show() -> None:
    declared = declare(RarelyRandom(), lambda n=3: {"x": torch.randn(n, 4)})
    noted = [declared.make({"n": 2}, 0)]
    few, many = (observe_calls(RarelyRandom(), declared, (), noted, few=each) for each in (True, False))
    assert few.random == many.random != ()


class GrowingTable(Plain):
    """A table that grows with the input and never shrinks; with `adds_all`, each answer depends on all of its rows."""

    def __init__(self, calls: list[int], adds_all: bool = False) -> None:
        super().__init__(calls)
        self.rows = torch.arange(4.0)
        self.adds_all = adds_all

    def forward(self, x: torch.Tensor) -> Any:
        self.note(len(x))
        if len(x) > len(self.rows):
            self.rows = torch.arange(float(len(x)))
        return x + (self.rows.sum() if self.adds_all else 0) + self.rows[: len(x), None]


@pytest.mark.parametrize("few", [True, False])
def test_the_largest_noted_inputs_are_called_twice_where_the_state_that_they_leave_changes_no_answer(few: bool) -> None:
    calls: list[int] = []
    module = GrowingTable(calls)
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)})
    writing = [declared.make({"n": n}, 0) for n in (90, 6)]
    assert not observe_calls(module, declared, writing, (), few=few).has_memory
    assert calls.count(90) == 2


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("sizes", [(90,), (6, 90), (90, 6)])
def test_state_that_large_inputs_leave_and_that_changes_answers_is_memory(few: bool, sizes: tuple[int, ...]) -> None:
    module = GrowingTable([], adds_all=True)
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)})
    found = observe_calls(module, declared, [declared.make({"n": n}, 0) for n in sizes], (), few=few)
    assert [kept.slot.path for kept in found.state] == ["rows"]


class DroppingTable(GrowingTable):
    """Draws a number that nothing reads; with `keeps`, it fills new rows of its table with it."""

    def __init__(self, calls: list[int], keeps: bool = False, reads_seed: bool = False) -> None:
        super().__init__(calls)
        self.keeps, self.reads_seed = keeps, reads_seed

    def forward(self, x: torch.Tensor) -> Any:
        chance, is_larger = torch.rand(()), len(x) > len(self.rows)
        answer = super().forward(x)
        if is_larger and self.keeps:
            self.rows = self.rows + chance
        if is_larger and self.reads_seed:
            self.rows = self.rows + torch.initial_seed() % 7
        return answer + self.rows[0]


def fresh_reply(module: nn.Module, inputs: Any) -> Reply:
    with Replay(module, flatten_outputs) as replay:
        return replay.fresh(lambda module: module(*inputs.args, **inputs.kwargs))


@pytest.mark.parametrize("few", [True, False])
def test_inputs_with_a_known_reply_are_called_twice_where_their_random_numbers_are_not_read(few: bool) -> None:
    calls: list[int] = []
    module = DroppingTable(calls)
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)})
    noted = [declared.make({"n": 90}, 0)]
    known = {id(noted[0]): fresh_reply(module, noted[0])}
    calls.clear()
    found = observe_calls(module, declared, noted, noted, few, known)
    assert not (found.has_memory or found.random or found.unsteady)
    assert calls.count(90) == 2


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("wrong", [{"keeps": True}, {"reads_seed": True}])
def test_a_known_reply_hides_neither_state_nor_random_numbers(wrong: dict[str, bool], few: bool) -> None:
    module = DroppingTable([], **wrong)
    declared = declare(module, lambda n=3: {"x": torch.randn(n, 4)})
    noted = [declared.make({"n": 90}, 0)]
    known = {id(noted[0]): fresh_reply(module, noted[0])}
    usual, found = (observe_calls(module, declared, noted, noted, few, each) for each in ({}, known))
    assert usual.random or usual.has_memory or usual.unsteady
    assert (found.random, found.has_memory, found.unsteady) == (usual.random, usual.has_memory, usual.unsteady)


class WritesTheSame(Plain):
    def forward(self, x: torch.Tensor) -> Any:
        self.rows = min(4, x.shape[0])
        return super().forward(x) * self.rows


def test_a_model_that_writes_the_same_at_each_call_is_not_called_forty_times_more() -> None:
    counts = []
    for few in (True, False):
        calls: list[int] = []
        assert not observe(WritesTheSame(calls), few=few).has_memory
        counts.append(len(calls))
    assert counts[0] < 25 and counts[1] > 50


@pytest.mark.parametrize("make", [Counting, Silent, Random, Ticking])
def test_few_calls_show_what_many_show(make: type[nn.Module]) -> None:
    few, many = observe(make(), few=True), observe(make())
    assert (few.has_memory, few.random, few.unsteady) == (many.has_memory, many.random, many.unsteady)
    assert few.has_memory or few.random or few.unsteady


def test_readings_of_a_module_hold_its_weights_once() -> None:
    module = nn.Linear(4, 4)
    first = read_slots(module)
    second = read_slots(module, first)
    assert second["weight"][1] is first["weight"][1] is not module.weight
    with torch.no_grad():
        module.weight[0, 0] = -0.0
        first_zero = read_slots(module, second)
        module.weight[0, 0] = 0.0
    third = read_slots(module, first_zero)
    assert [slot.path for slot in changed_slots(first_zero, third)] == ["weight"]
    assert third["bias"][1] is first["bias"][1]


class Unfilled(nn.Module):
    """Reads unfilled memory for indices that it does not define: alike for the first calls, another one later."""

    def __init__(self, later: int) -> None:
        super().__init__()
        memory = itertools.chain(itertools.repeat(0, later), itertools.count(1))
        self.reads = lambda: next(memory)  # a function is not copied with its module

    def forward(self, index: torch.Tensor) -> Any:
        return index + (0 if index.tolist() == [2, 0, 3, 1] else self.reads())


@pytest.mark.parametrize("later", range(12))
def test_integers_that_were_drawn_are_no_sign_of_a_clock_however_late_their_answers_differ(later: int) -> None:
    declared = declare(Unfilled(later), (torch.tensor([2, 0, 3, 1]),), dynamic={"index": "n"})
    assert not observe_repeats(Unfilled(later), declared, [{"n": 4}, {"n": 3}, {"n": 5}]).unsteady
