"""Activations and special functions keep the digits of small values, where ONNX's own forms lose them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, find_differences

SMALL = torch.tensor([-1e-7, 1e-7, -1e-9, -3e-5, -1e-3, -0.5, -1e-20, 0.0, -0.0, 2.0, -30.0, -200.0])


@pytest.mark.parametrize(
    "function",
    [F.elu, lambda x: F.elu(x, 2.5), lambda x: F.celu(x, 1.3), F.selu, torch.special.bessel_j1],
    ids=["elu", "elu with alpha", "celu", "selu", "bessel_j1"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_values_keep_their_digits(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    inputs = [(SMALL[:count].to(dtype),) for count in (12, 1, 7)]

    def enlarged(x: torch.Tensor) -> torch.Tensor:
        return function(x) / torch.where(x == 0, 1, x.abs().clamp(max=1))

    assert find_differences(Row("", enlarged, inputs, tolerance=2e-6)) == []


def test_the_quantiles_of_a_normal_distribution_have_their_tails() -> None:
    tails = torch.tensor([1e-10, 1e-12, 1e-30, 1e-38, 0.5, 0.999999, 1e-9, 1e-8, 1e-3, 0.0, 1.0, 0.2, 0.95])
    inputs = [(tails[:count],) for count in (13, 1, 7)]
    assert find_differences(Row("", torch.special.ndtri, inputs, tolerance=1e-5)) == []
    least = [(torch.tensor([1e-300, 1e-200, 1e-40, 0.3, 1 - 1e-15], dtype=torch.float64)[:count],) for count in (5, 2)]
    assert find_differences(Row("", torch.special.ndtri, least, tolerance=1e-6)) == []


def test_lgamma_of_a_number_just_below_zero_is_finite() -> None:
    inputs = [(torch.tensor([-1e-20, 1e-20, -0.5, -1.0, 0.3])[:count],) for count in (5, 2)]
    assert find_differences(Row("", torch.lgamma, inputs, tolerance=1e-4)) == []


@pytest.mark.parametrize("width", [1, 2])
def test_a_window_with_nan_has_nan_for_its_largest(width: int) -> None:
    numbers = torch.tensor([[1.0, torch.nan, 3.0, -torch.inf, -torch.inf, 2.0]])
    inputs = [(numbers,), (numbers.flip(1)[:, :4],), (numbers.repeat(3, 1),)]
    assert find_differences(Row("", lambda x: F.max_pool1d(x, width), inputs)) == []
