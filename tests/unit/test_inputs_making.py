"""Inputs at other sizes are of the example's kind, the same for the same seed, and nobody's random numbers move."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.findings import DeclarationError
from anyshape.inputs import Declared, declare
from anyshape.inputs.declared import check_values
from anyshape.inputs.kinds import recognise

INF = float("inf")


def draw(shape: tuple[int, ...], *examples: torch.Tensor) -> torch.Tensor:
    return recognise(examples).draw(shape, torch.Generator().manual_seed(1))


KINDS: list[tuple[str, str, list[torch.Tensor]]] = [
    ("ones", "constant", [torch.ones(2, 3)]),
    ("zeros in two examples", "constant", [torch.zeros(2), torch.zeros(5)]),
    ("one float", "normal", [torch.tensor([[0.37]])]),
    ("no elements at all", "normal", [torch.zeros(0, 3)]),
    ("no whole numbers at all", "zeros", [torch.zeros(0, dtype=torch.int64)]),
    ("positions", "arange", [torch.arange(5)[None].expand(2, 5)]),
    ("two positions", "arange", [torch.tensor([0, 1])]),
    ("positions from elsewhere", "arange", [torch.arange(3) + 4, torch.arange(5) + 2]),
    ("two numbers that are no positions", "whole numbers", [torch.tensor([3, 7])]),
    ("even floats", "linspace", [torch.linspace(0, 1, 7)]),
    ("a causal mask", "triangle", [torch.ones(4, 4).tril()]),
    ("an additive causal mask", "triangle", [torch.full((4, 4), -INF).triu(1)]),
    ("a mask of what may not be seen", "triangle", [torch.ones(5, 5, dtype=torch.bool).triu(1)]),
    ("padding at the end", "prefix", [torch.tensor([[1, 1, 0], [1, 0, 0]])]),
    ("padding at the front", "prefix", [torch.tensor([[False, True, True], [False, False, True]])]),
    ("an order", "permutation", [torch.tensor([3, 0, 2, 1])]),
    ("offsets", "sorted", [torch.tensor([0, 2, 2, 9])]),
    ("flags", "two values", [torch.tensor([True, False, True, True, False, True])]),
    ("a float mask", "two values", [torch.tensor([0.0, -INF, 0.0, -INF, 0.0])]),
    ("tokens", "whole numbers", [torch.tensor([[5, 2, 9], [7, 3, 3]])]),
    ("floats", "floats", [torch.tensor([0.1, -3.0, 2.5, 0.7])]),
    ("a category beside floats", "columns", [torch.tensor([[0.0, 0.31], [3.0, -1.2], [1.0, 0.7], [3.0, 2.4]])]),
    (
        "many of few and of thousands",
        "columns",
        [torch.stack([torch.arange(30) * 7919 % 2003, torch.arange(30) % 4], 1)],
    ),
    ("complex numbers", "floats", [torch.tensor([0.1 + 2j, -3.0 - 1j, 2.5 + 0j, 0.7 + 0.5j])]),
]


@pytest.mark.parametrize(("name", "examples"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_a_kind_is_recognised_by_its_values(name: str, examples: list[torch.Tensor]) -> None:
    assert recognise(examples).name == name


@pytest.mark.parametrize("examples", [row[2] for row in KINDS], ids=[row[0] for row in KINDS])
def test_drawn_values_are_of_their_own_kind(examples: list[torch.Tensor]) -> None:
    shape = tuple(size + 6 for size in examples[0].shape)
    assert draw(shape, *examples).shape == shape
    stays_inside = recognise(examples).name not in ("arange", "normal", "permutation", "zeros")
    if stays_inside and not examples[0].is_complex():
        seen = [float(value) for example in examples for value in example.flatten()]
        drawn = [float(value) for value in draw(shape, *examples).flatten()]
        assert min(seen) <= min(drawn) and max(drawn) <= max(seen)


def test_positions_count_on() -> None:
    assert draw((2, 8), torch.arange(3).expand(2, 3)).tolist() == [list(range(8))] * 2


def test_an_order_stays_an_order() -> None:
    assert sorted(draw((9,), torch.tensor([3, 0, 2, 1])).tolist()) == list(range(9))


def test_offsets_begin_where_they_began() -> None:
    drawn = draw((7,), torch.tensor([0, 2, 2, 9]))
    assert drawn[0] == 0 and drawn.tolist() == sorted(drawn.tolist())


def test_every_padded_row_begins_with_something() -> None:
    drawn = draw((50, 6), torch.tensor([[1, 1, 0], [1, 0, 0]]))
    assert bool(drawn[:, 0].all()) and bool((drawn.diff(dim=1) <= 0).all()) and not bool(drawn.all())


def test_a_causal_mask_stays_causal() -> None:
    assert torch.equal(
        draw((6, 6), torch.full((4, 4), -INF).triu(1)), torch.full((6, 6), -INF, dtype=torch.float64).triu(1)
    )


def test_floats_are_spread_like_the_example() -> None:
    example = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 3 + 10
    drawn = draw((4000,), example)
    assert abs(float(drawn.mean()) - 10) < 0.5 and abs(float(drawn.std()) - 3) < 0.5
    assert len(drawn.unique()) > 3900


class Anything(nn.Module):
    def forward(self, x: Any, y: Any = None, k: Any = None) -> Any:
        return x


def ways() -> dict[str, Declared]:
    example = (torch.randn(3, 4), torch.randint(0, 9, (3,)), 0.5)
    words = {"x": "n 4", "y": "n", "k": "value"}

    def function(n: int = 3, k: float = 0.5) -> Any:
        return torch.randn(n, 4), torch.from_numpy(np.random.randint(0, 9, (n,))), k

    return {
        "function": declare(Anything(), function),
        "words": declare(Anything(), example, dynamic=words),
        "examples": declare(
            Anything(), [example, (torch.randn(5, 4), torch.randint(0, 9, (5,)), 1.5)], names={"x": "n 4"}
        ),
    }


def test_millions_of_floats_are_spread_like_the_example_and_no_two_rows_are_alike() -> None:
    drawn = draw((1100, 1000), torch.randn(100, generator=torch.Generator().manual_seed(0)))
    assert drawn.shape == (1100, 1000)
    assert abs(float(drawn.mean())) < 0.3
    assert len(torch.unique(drawn, dim=0)) == 1100


@pytest.mark.parametrize("way", ["function", "words", "examples"])
def test_the_same_seed_makes_the_same_inputs(way: str) -> None:
    declared = ways()[way]
    one, two, other = (declared.flat(declared.make({"n": 6}, seed)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one[:2], two[:2], strict=True))
    assert not torch.equal(one[0], other[0])


@pytest.mark.parametrize("way", ["function", "words", "examples"])
def test_random_numbers_go_on_where_they_stood(way: str) -> None:
    declared = ways()[way]
    states = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    declared.make({"n": 6}, 3)
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert states[1:] == (random.getstate(), np.random.get_state()[1].tolist())


@pytest.mark.parametrize("way", ["words", "examples"])
def test_the_example_itself_is_seed_0_at_its_sizes(way: str) -> None:
    declared = ways()[way]
    made, example = (declared.flat(inputs) for inputs in (declared.make({"n": 3}, 0), declared.example))
    assert all(torch.equal(a, b) for a, b in zip(made[:2], example[:2], strict=True))
    assert made[0] is not example[0] and made[2] == 0.5


@pytest.mark.parametrize("way", ["function", "words", "examples"])
def test_numbers_that_are_inputs_vary_with_the_seed(way: str) -> None:
    declared = ways()[way]
    assert declared.flat(declared.make({"n": 6}, 0))[2] == 0.5
    assert len({declared.flat(declared.make({"n": 6}, seed))[2] for seed in range(12)}) > 2


def test_values_follow_their_rules_and_fall_back_to_the_default() -> None:
    def inputs(n: int = 4, top: int = 2, sign: float = 1.0, strict: bool = False) -> Any:
        if strict:
            raise ValueError("never")
        return torch.full((n,), sign), torch.tensor(top)

    declared = declare(Anything(), inputs, where=["top <= n"])
    assert declared.domain.names == ("n",) and declared.domain.relations == ()
    tops = {int(declared.flat(declared.make({"n": 3}, seed))[1]) for seed in range(40)}
    assert tops <= {1, 2, 3} and len(tops) == 3
    signs = {float(declared.flat(declared.make({"n": 3}, seed))[0][0]) for seed in range(40)}
    assert signs == {1.0, -1.0, 0.0, 2.0}
    assert [value.choices for value in declared.values if value.name == "strict"] == [(False,)]


def test_a_value_that_the_function_refuses_elsewhere_falls_back() -> None:
    def inputs(n: int = 8, top: int = 2) -> Any:
        if top > n:
            raise ValueError("too many")
        return torch.ones(n), torch.tensor(top)

    declared = declare(Anything(), inputs)
    assert {int(declared.flat(declared.make({"n": 2}, seed))[1]) for seed in range(30)} == {1, 2}


def test_a_function_that_changes_its_rule_is_found_out() -> None:
    def inputs(n: int = 4) -> torch.Tensor:
        return torch.ones(n if n < 1000 else n + 1)

    declared = declare(Anything(), inputs)
    declared.make({"n": 999}, 0)
    with pytest.raises(DeclarationError, match=r"AS017 axis-follows-nothing: input 'x' is float32\[1001\]"):
        declared.make({"n": 1000}, 0)


def test_a_check_of_made_inputs_sees_shapes_dtypes_and_constants() -> None:
    declared = declare(Anything(), (torch.ones(3), torch.ones(2), 7), dynamic={"x": "n"})
    check_values(declared.leaves, declared.flat(declared.make({"n": 4}, 1)), {"n": 4})
    wrong: list[Callable[[list[Any]], list[Any]]] = [
        lambda flat: [torch.ones(5), *flat[1:]],
        lambda flat: [flat[0].double(), *flat[1:]],
        lambda flat: [*flat[:2], 8],
    ]
    for spoil in wrong:
        with pytest.raises(DeclarationError, match="AS017"):
            check_values(declared.leaves, spoil(declared.flat(declared.make({"n": 4}, 1))), {"n": 4})


def test_a_category_is_drawn_within_its_column_and_floats_beside_it_are_floats() -> None:
    example = torch.cat([torch.tensor([[2.0], [5.0], [3.0], [2.0]]), torch.randn(4, 2)], 1)
    drawn = draw((200, 3), example)
    assert set(drawn[:, 0].tolist()) == {2.0, 3.0, 4.0, 5.0}
    assert bool((drawn[:, 1:] != drawn[:, 1:].round()).all())
