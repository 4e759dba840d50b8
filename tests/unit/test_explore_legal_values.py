"""Integers that a module takes, learned by trying: bounds that are expressions of the dims, and an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from anyshape.explore.legal_values import LegalValues, learn_values
from anyshape.inputs import Declared, declare

D = torch.export.Dim.DYNAMIC


class Of(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.table = nn.Embedding(10, 4)
        self.rnn = nn.GRU(3, 4)

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        return self.function(self, x, n)


def learn(function: Callable[..., Any], x: torch.Tensor, n: torch.Tensor) -> tuple[LegalValues | None, Declared]:
    module = Of(function).eval()
    declared = declare(module, (x, n), dynamic=(dict.fromkeys(range(x.ndim - 1), D), dict.fromkeys(range(n.ndim), D)))

    def answers(inputs: Any) -> bool:
        try:
            with torch.no_grad():
                module(*inputs.args, **inputs.kwargs)
        except Exception:
            return False
        return True

    return learn_values(declared, answers), declared


def packed(module: Of, x: torch.Tensor, n: torch.Tensor, **options: Any) -> Any:
    return pad_packed_sequence(module.rnn(pack_padded_sequence(x, n, **options))[0])[0]


def whole(module: Of, x: torch.Tensor, n: torch.Tensor) -> Any:
    """The longest sequence fills the tensor: masks made of the padded length fit no other."""
    return packed(module, x, n) * x.new_ones(x.shape[0], 1, 1)


CASES: dict[str, tuple[Callable[..., Any], torch.Tensor, torch.Tensor, str, str]] = {
    "rows": (lambda m, x, n: x[n], torch.randn(5, 3), torch.tensor([0, 2, 4]), "0 <= n < x_0", ""),
    "columns": (lambda m, x, n: x[:, n], torch.randn(2, 6, 3), torch.tensor([0, 5, 4]), "0 <= n < x_1", ""),
    "of a table": (lambda m, x, n: m.table(n) + x.sum(), torch.randn(5, 3), torch.tensor([1, 2]), "0 <= n <= 9", ""),
    "flat": (
        lambda m, x, n: x.flatten(0, 1)[n],
        torch.randn(2, 6, 3),
        torch.tensor([0, 11, 4]),
        "0 <= n <= x_0*x_1 - 1",
        "",
    ),
    "lengths": (packed, torch.randn(7, 3, 3), torch.tensor([7, 4, 2]), "1 <= n <= x_0", "falling"),
    "lengths in any order": (
        lambda m, x, n: packed(m, x, n, enforce_sorted=False),
        torch.randn(7, 3, 3),
        torch.tensor([4, 7, 2]),
        "1 <= n <= x_0",
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_an_expression_of_the_dims(name: str) -> None:
    function, x, n, text, order = CASES[name]
    learned, _ = learn(function, x, n)
    assert learned is not None and (dict(learned.texts), learned.order) == ({"n": text}, order)


def test_the_longest_fills_the_tensor_where_the_module_needs_that() -> None:
    learned, _ = learn(whole, torch.randn(7, 3, 3), torch.tensor([7, 4, 2]))
    assert learned is not None and learned.order == "falling, the first at its largest"


def test_the_example_stays_and_drawn_values_are_legal() -> None:
    function, x, n, _, _ = CASES["rows"]
    learned, declared = learn(function, x, n)
    assert learned is not None
    assert torch.equal(learned.declared.make(declared.example_sizes, 0).args[1], n)
    drawn = learned.declared.make({"x_0": 2, "n_0": 50}, 3).args[1]
    assert set(drawn.tolist()) == {0, 1}


def test_where_any_integer_is_taken_there_is_nothing_to_learn() -> None:
    learned, _ = learn(lambda m, x, n: x.sum() * n, torch.randn(5, 3), torch.tensor([1, 2]))
    assert learned is None


def between_others(module: Of, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """Edges from a node to itself are left out."""
    first, second = edges[:, edges[0] != edges[1]]
    return torch.zeros_like(x).index_add(0, second, x[first])


def test_indices_are_learned_where_equal_ones_are_left_out() -> None:
    x, edges = torch.randn(6, 3), torch.stack([torch.arange(9) % 6, torch.arange(9) % 5])
    module = Of(between_others)
    declared = declare(module, (x, edges), dynamic={"x": "nodes _", "n": "_ edges"})

    def answers(inputs: Any) -> bool:
        try:
            module(*inputs.args, **inputs.kwargs)
        except Exception:
            return False
        return True

    learned = learn_values(declared, answers)
    assert learned is not None
    assert learned.texts == {"n": "0 <= n < nodes"}
