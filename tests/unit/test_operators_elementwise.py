"""Elementwise functions that ONNX has not, at ordinary and at odd values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from operator_exports import Row, find_differences

ODD = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, -2.0, 0.5, -0.5, 1e-3, 30.0, 100.0, torch.inf, -torch.inf, torch.nan, -7.3, 2.0]
)


def values(count: int) -> torch.Tensor:
    return torch.cat([ODD, 3 * torch.randn(count, generator=torch.Generator().manual_seed(count))])


@pytest.mark.parametrize("function", [torch.lgamma, torch.digamma, torch.signbit], ids=lambda f: f.__name__)
def test_of_one_input(function: Callable[..., torch.Tensor]) -> None:
    assert find_differences(Row("", function, [(values(count),) for count in (5, 1, 9)])) == []


@pytest.mark.parametrize(
    "function",
    [torch.fmax, torch.fmin, torch.copysign, torch.hypot, lambda x, y: torch.masked_select(x, y > 0)],
    ids=["fmax", "fmin", "copysign", "hypot", "masked_select"],
)
def test_of_two_inputs(function: Callable[..., torch.Tensor]) -> None:
    inputs = [(values(count), values(count).flip(0)) for count in (5, 1, 9)]
    assert find_differences(Row("", function, inputs)) == []


def test_the_inverse_of_the_error_function_has_its_ends() -> None:
    inputs = [(torch.cat([torch.tensor([1.0, -1.0, 0.0, 2.0, 0.999999]), torch.linspace(-1, 1, n)]),) for n in (5, 90)]
    assert find_differences(Row("", torch.erfinv, inputs)) == []
