"""Whether a call reads torch's random numbers: they are withheld from it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn

from anyshape.inputs import flatten_outputs
from anyshape.intercept.replay import Replay

X = torch.ones(3, 8)


class Model(nn.Module):
    def __init__(self, function: Callable[[Model, torch.Tensor], object]) -> None:
        super().__init__()
        self.function = function
        self.drop = 0.1

    def forward(self, x: torch.Tensor) -> object:
        return self.function(self, x)


def ignores_draws(function: Callable[[Model, torch.Tensor], object]) -> bool:
    with Replay(Model(function), flatten_outputs) as replay:

        def call(module: nn.Module) -> object:
            return module(X.clone())

        return replay.ignores_draws(call, replay.fresh(call))


def layer_drop(model: Model, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        drawn = torch.rand([])
        if not (model.training and drawn < model.drop):
            x = x.sin() * 2
    return x


def drawn_for_nothing(model: Model, x: torch.Tensor) -> torch.Tensor:
    torch.randn(3, 8), torch.randint(5, (2,)), torch.randperm(4), torch.bernoulli(x / 2)
    return x + 1


def idle_dropout(model: Model, x: torch.Tensor) -> torch.Tensor:
    torch.rand([])
    return nn.functional.dropout(x, 0.5, training=model.training)


def used_at_large_sizes_alone(model: Model, x: torch.Tensor) -> torch.Tensor:
    noise = torch.rand(8)
    return x + noise if x.shape[0] > 100 else x


@pytest.mark.parametrize(
    "function",
    [layer_drop, drawn_for_nothing, idle_dropout, used_at_large_sizes_alone],
    ids=lambda each: each.__name__,
)
def test_numbers_that_nothing_reads_are_ignored(function: Callable[[Model, torch.Tensor], object]) -> None:
    assert ignores_draws(function)


def compared_in_python(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if torch.rand([]) < 1e-6 else x


def compared_and_forgotten(model: Model, x: torch.Tensor) -> torch.Tensor:
    if torch.rand([]).item() < 1e-6:
        model.drop = 0.2
    return x


def read_by_numpy(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if torch.rand(1).numpy()[0] < 1e-6 else x


def read_as_list(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if torch.rand(2).tolist()[1] < 1e-6 else x


def read_as_copy(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x + copy.deepcopy(torch.rand([])) * 1e-12


def read_where_errors_are_hidden(model: Model, x: torch.Tensor) -> torch.Tensor:
    try:
        return x * 2 if torch.rand([]) < 1e-6 else x
    except RuntimeError:
        return x


def rarely_used(model: Model, x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.rand([]) < 1e-6, x * 2, x)


def given_back(model: Model, x: torch.Tensor) -> object:
    return x, torch.rand(3)


def written_in_place(model: Model, x: torch.Tensor) -> torch.Tensor:
    drawn = torch.empty(1)
    row = drawn[0]
    drawn.uniform_()
    return x * 2 if row < 1e-6 else x


def drawn_by_another_thread(model: Model, x: torch.Tensor) -> torch.Tensor:
    drawn: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: drawn.append(torch.rand([])))
    thread.start()
    thread.join()
    return x * 2 if drawn[0] < 1e-6 else x


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    if bool(torch.rand([1]) < 1e-6):
        return x * 2
    return x


def drawn_by_a_script(model: Model, x: torch.Tensor) -> torch.Tensor:
    return scripted(x)


@pytest.mark.parametrize(
    "function",
    [
        compared_in_python,
        compared_and_forgotten,
        read_by_numpy,
        read_as_list,
        read_as_copy,
        read_where_errors_are_hidden,
        rarely_used,
        given_back,
        written_in_place,
        drawn_by_another_thread,
        drawn_by_a_script,
    ],
    ids=lambda each: each.__name__,
)
def test_numbers_that_are_read_are_not_ignored(function: Callable[[Model, torch.Tensor], object]) -> None:
    assert not ignores_draws(function)


def test_the_generator_and_the_model_are_as_before() -> None:
    before = torch.random.get_rng_state()

    def keep_what_is_drawn(model: Model, x: torch.Tensor) -> torch.Tensor:
        model.kept = torch.rand(3)  # type: ignore[assignment]
        return x

    assert ignores_draws(keep_what_is_drawn)
    assert torch.equal(torch.random.get_rng_state(), before)
