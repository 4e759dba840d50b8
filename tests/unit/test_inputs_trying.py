"""What can vary is found by trying, on the meta device where that is possible, and the module stays as it was."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from anyshape.inputs import declare
from anyshape.inputs.by_trying import TriedAxes
from anyshape.inputs.calls import BoundCall, bind_inputs, read_signature


def bind_call(module: Any, inputs: Any) -> BoundCall:
    return bind_inputs(read_signature(module), inputs)


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(()))
        self.last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.last = x
        answer: torch.Tensor = self.linear(x)
        return answer


class ReadsValues(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x[: int(n)].sum(0)


class Broadcasts(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def test_a_plain_module_is_tried_on_the_meta_device() -> None:
    trial = TriedAxes(nn.Linear(4, 2), bind_call(nn.Linear(4, 2), torch.randn(3, 4)))
    assert trial.on_meta
    assert trial.accepts({("input", 0): 10**9}) and not trial.accepts({("input", 1): 5})


def test_a_module_that_reads_values_is_tried_for_real() -> None:
    module = ReadsValues()
    trial = TriedAxes(module, bind_call(module, (torch.randn(3, 4), torch.tensor(2))))
    assert not trial.on_meta and trial.accepts({("x", 0): 7})


def test_a_scripted_module_is_tried_for_real() -> None:
    module = torch.jit.script(Broadcasts())
    assert declare(module, (torch.randn(3), torch.randn(3)), dynamic="auto").paste == 'dynamic={"x": "x_0", "y": "x_0"}'


def test_trying_leaves_the_module_as_it_was() -> None:
    module = Remembers().train()
    weights = [parameter.clone() for parameter in module.parameters()]
    declared = declare(module, torch.randn(3, 4), dynamic="auto")
    assert declared.paste == 'dynamic={"x": "x_0 4"}'
    assert module.training and module.last is None and float(module.calls) == 0
    assert all(torch.equal(old, new) for old, new in zip(weights, module.parameters(), strict=True))


def test_axes_of_one_input_can_be_tied() -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    assert declare(Square(), torch.randn(4, 4), dynamic="auto").paste == 'dynamic={"x": "x_0 x_0"}'


def test_a_size_that_is_met_by_accident_is_not_tied() -> None:
    declared = declare(nn.Linear(4, 2), torch.randn(4, 4), dynamic="auto")
    assert declared.paste == 'dynamic={"input": "input_0 4"}'


def test_auto_names_are_found_by_trying_and_said_so() -> None:
    declared = declare(nn.Linear(4, 2), torch.randn(3, 4), dynamic="auto")
    assert declared.source == "auto" and [note.code for note in declared.notes] == ["AS056", "AS032"]
    assert declared.notes[-1].what == "axis 1 of input 'input' stays 4."


def test_a_function_without_parameters_is_an_example_for_words() -> None:
    declared = declare(nn.Linear(4, 2), lambda: torch.randn(3, 4), dynamic={"input": "batch 4"})
    assert declared.source == "words" and declared.example_sizes == {"batch": 3}


def test_a_module_with_large_inputs_is_not_called_for_real_again_and_again() -> None:
    pool = nn.AvgPool1d(3)
    assert TriedAxes(pool, bind_call(pool, torch.randn(2, 3, 9))).is_small
    assert not TriedAxes(pool, bind_call(pool, torch.zeros(1000, 1, 1001))).is_small
