"""Edge values: which there are for given inputs, and when an answer to them says something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from anyshape.verify.edge_values import EDGES, edge_called, edges_of, is_finite, is_mask, is_usable, with_values
from anyshape.verify.reference import Answer


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def names(*args: Any) -> set[str]:
    return {edge.name for edge in edges_of(Call(args))}


def given(*values: float) -> Answer:
    return Answer(("output",), (np.array(values, np.float32),), (False,), 0.0)


def test_floats_are_negated_zeroed_enlarged_and_repeated() -> None:
    assert names(torch.randn(2, 3)) == {"negated", "zeros", "large", "small", "repeated", "few-numbers"}


def test_half_precision_is_not_enlarged() -> None:
    assert "large" not in names(torch.randn(2, 3).half())
    assert "large" in names(torch.randn(2, 3).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_would_be_mostly_rounding_is_not_made_small(dtype: torch.dtype) -> None:
    assert "small" not in names(torch.randn(2, 3).to(dtype))


def test_eight_bit_floats_are_left_alone() -> None:
    assert names(torch.randn(2, 3).to(torch.float8_e4m3fn)) == set()


def test_masks_are_set_and_cleared() -> None:
    assert names(torch.tensor([True, False])) == {"all-false", "all-true"}
    assert names(torch.ones(2, 3, dtype=torch.int64)) == {"all-false"}


def test_identifiers_and_lengths_are_left_alone() -> None:
    assert names(torch.tensor([[5, 7]]), torch.tensor([1, 1])) == set()


@pytest.mark.parametrize("name", [edge.name for edge in EDGES])
def test_what_changes_nothing_is_not_tried(name: str) -> None:
    edge = edge_called(name)
    assert edge is not None
    changed = with_values(Call((torch.randn(2, 2), torch.tensor([True, False]))), edge)
    if name not in ("negated", "large", "small"):
        assert name not in {other.name for other in edges_of(changed)}


def test_the_original_is_untouched_wherever_the_tensor_hides() -> None:
    x = torch.randn(3)
    changed = with_values(Call((), {"deep": [{"x": x}]}), edge_called("zeros"))
    assert changed.kwargs["deep"][0]["x"].tolist() == [0.0, 0.0, 0.0]
    assert x.abs().sum() > 0


def test_random_values_stay_as_they_are() -> None:
    call = Call((torch.randn(3),))
    assert with_values(call, edge_called("random")) is call


def test_empty_and_scalar_tensors_have_edge_values_too() -> None:
    assert names(torch.zeros(0, 3)) == set()
    assert names(torch.tensor(2.0)) == {"negated", "zeros", "large", "small", "few-numbers"}


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor(True), True),
        (torch.tensor([[0, 1]]), True),
        (torch.tensor([0, 1]), False),
        (torch.tensor([[0, 2]]), False),
        (torch.tensor([[0.0, 1.0]]), False),
        (torch.zeros(0, 2, dtype=torch.int64), False),
    ],
)
def test_a_mask_is_boolean_or_zeros_and_ones(tensor: torch.Tensor, expected: bool) -> None:
    assert is_mask(tensor) is expected


def test_an_answer_that_loses_its_numbers_says_nothing() -> None:
    assert is_usable(given(1, 2), given(3, 4))
    assert not is_usable(given(1, np.nan), given(3, 4))
    assert not is_usable(given(1, np.inf), given(3, 4))
    assert is_usable(given(1, -np.inf), given(3, np.inf))
    assert not is_usable(given(1, np.nan), given(3, np.inf))
    assert is_finite(given(1, 2))
    assert not is_finite(given(1, np.nan))


def test_an_infinity_of_the_users_keeps_its_sign() -> None:
    negated = with_values(Call((torch.tensor([1.0, -torch.inf, torch.inf]),)), edge_called("negated"))
    assert negated.args[0].tolist() == [-1.0, -torch.inf, torch.inf]
