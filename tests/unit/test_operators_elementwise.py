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
    [torch.fmax, torch.fmin, torch.copysign, torch.hypot, lambda x, y: torch.masked_select(x, y > 0), torch.atan2],
    ids=["fmax", "fmin", "copysign", "hypot", "masked_select", "atan2"],
)
def test_of_two_inputs(function: Callable[..., torch.Tensor]) -> None:
    inputs = [(values(count), values(count).flip(0)) for count in (5, 1, 9)]
    assert find_differences(Row("", function, inputs)) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_an_angle_has_its_quadrant_at_zeros_of_either_sign(dtype: torch.dtype) -> None:
    pairs = torch.cartesian_prod(ODD, ODD).to(dtype)
    inputs = [(pairs[:, 0], pairs[:, 1]), (pairs[:7, 0], pairs[:7, 1])]
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2}[dtype]
    assert find_differences(Row("", lambda y, x: 1 / torch.atan2(y, x), inputs, tolerance=tolerance)) == []
    if dtype is not torch.float16:
        angle = Row("", lambda y, x: (torch.complex(x, y).angle(), x.angle()), inputs, tolerance=tolerance)
        assert find_differences(angle) == []


def test_the_inverse_of_the_error_function_has_its_ends() -> None:
    inputs = [(torch.cat([torch.tensor([1.0, -1.0, 0.0, 2.0, 0.999999]), torch.linspace(-1, 1, n)]),) for n in (5, 90)]
    assert find_differences(Row("", torch.erfinv, inputs)) == []


def divided(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    size = x.shape[0]
    # Where a half is truncated, onnxruntime skips the rounding of the quotient.
    modes = [torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc") if x.dtype != torch.float16]
    return x // y, x // 2, 7 // x, x // size, x % y, x % 0.1, 7 % x, 7.5 % x, x % size, *modes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_division_that_rounds_does_so_after_the_exact_remainder(dtype: torch.dtype) -> None:
    """3.6 // 0.6 is 5, though 3.6 / 0.6 rounds to 6."""
    tenths = torch.arange(-40, 41) / 10
    pairs = torch.cartesian_prod(tenths, tenths)
    inputs = [tuple(torch.cat([part, values(n), ODD.flip(0)]).to(dtype) for part in pairs.T) for n in (5, 1, 9)]
    assert find_differences(Row("", divided, inputs, tolerance=0)) == []


def test_integers_are_divided_exactly() -> None:
    def divide(n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        modes = [torch.div(n, m, rounding_mode=mode) for mode in ("floor", "trunc")]
        by_number = n // 3, n % n.shape[0], n // 2.5, n % 2.5, n // n.shape[0]
        return n // m, n % m, *by_number, 7 // m, -7 % m, torch.div(7, m, rounding_mode="trunc"), *modes

    number = torch.tensor([2**53 + 1, -(2**53) - 1, 7, -7, 2**24 + 1])
    inputs = [(number.repeat(n), torch.tensor([1, -1, 2, -2, 3]).repeat(n)) for n in (2, 1, 3)]
    assert find_differences(Row("", divide, inputs, tolerance=0)) == []


def test_a_number_in_double_precision_does_not_go_through_single_precision() -> None:
    inputs = [(values(n).double(),) for n in (5, 1)]
    row = Row("", lambda x: (torch.full((2, x.shape[0]), 0.1, dtype=x.dtype), x % 0.1), inputs, tolerance=1e-15)
    assert find_differences(row) == []
