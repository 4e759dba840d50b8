"""Special functions: Bessel, zeta and its kin, orthogonal polynomials, logarithms of sums; near poles, far out, below 0."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, compare, export, find_differences

PLACES = torch.tensor([0.0, 1e-3, 0.4, 1.0, 1.9, 2.1, 5.0, 7.99, 8.01, 30.0, 80.0, -0.3, -2.5, -9.0, -40.0])
SPECIAL = torch.special


def places(*counts: int) -> list[tuple[torch.Tensor, ...]]:
    return [(PLACES[:count],) for count in counts]


@pytest.mark.parametrize(
    "function",
    [
        torch.i0,
        SPECIAL.i0e,
        SPECIAL.i1,
        SPECIAL.i1e,
        SPECIAL.modified_bessel_i0,
        SPECIAL.modified_bessel_i1,
        SPECIAL.modified_bessel_k0,
        SPECIAL.modified_bessel_k1,
        SPECIAL.scaled_modified_bessel_k0,
        SPECIAL.scaled_modified_bessel_k1,
        SPECIAL.spherical_bessel_j0,
        SPECIAL.bessel_j0,
        SPECIAL.bessel_j1,
        SPECIAL.bessel_y0,
        SPECIAL.bessel_y1,
        SPECIAL.erfcx,
        SPECIAL.log_ndtr,
        F.logsigmoid,
    ],
    ids=lambda function: str(function.__name__),
)
@pytest.mark.long_table
def test_is_right_near_and_far(function: Callable[..., torch.Tensor]) -> None:
    assert find_differences(Row("", function, places(15, 1, 9))) == []


@pytest.mark.parametrize("order", range(5))
def test_polygamma_is_right_on_both_sides_of_its_poles(order: int) -> None:
    numbers = torch.tensor([0.3, 1.0, 2.5, 20.0, -0.4, -1.7, -12.2])
    inputs = [(numbers[:count],) for count in (7, 1, 4)]
    assert find_differences(Row("", lambda x: torch.polygamma(order, x), inputs, tolerance=1e-3)) == []


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_polygamma_at_poles_and_infinities_is_as_eager_and_the_other_elements_are_right(
    order: int, dtype: torch.dtype
) -> None:
    edges = [0.0, -0.0, -1.0, -2.0, -3.0, -40.0, -1e8, math.inf, -math.inf, math.nan, -1e-30]
    numbers = torch.tensor([*edges, 0.3, 20.0, -1.7, -12.2], dtype=dtype)
    inputs = [(numbers[:count],) for count in (15, 1, 8)]
    row = Row("", lambda x: torch.polygamma(order, x), inputs, tolerance=1e-3)
    assert find_differences(row) == []


def test_zeta_of_infinite_and_missing_numbers_is_as_eager_and_the_other_elements_are_right() -> None:
    x = torch.tensor([2.0, 2.0, 3.0, 2.0, 4.5, 2.0, math.nan, math.inf])
    q = torch.tensor([0.5, math.inf, -math.inf, math.nan, math.inf, -7.5, 2.0, 2.0])
    inputs = [(x[:count], q[:count]) for count in (8, 1, 5)]
    assert find_differences(Row("", SPECIAL.zeta, inputs)) == []


def test_zeta_is_right_at_poles_and_where_it_is_no_number() -> None:
    x = torch.tensor([2.0, 3.5, 1.0, 0.5, 4.0, 3.0, 2.5, 20.0])
    q = torch.tensor([1.0, 0.2, 2.0, 1.0, -1.0, -2.5, -0.5, 3.0])
    inputs = [(x[:count], q[:count]) for count in (8, 1, 5)]
    assert find_differences(Row("", SPECIAL.zeta, inputs)) == []


def test_the_inverse_of_the_normal_distribution_reaches_its_ends() -> None:
    inputs = [(torch.tensor(numbers),) for numbers in ([0.5, 0.01, 0.999, 0.0, 1.0], [0.3], [1.5, -0.1, 1e-6])]
    assert find_differences(Row("", SPECIAL.ndtri, inputs, tolerance=1e-3)) == []


@pytest.mark.parametrize(
    "function",
    [
        SPECIAL.chebyshev_polynomial_t,
        SPECIAL.chebyshev_polynomial_u,
        SPECIAL.chebyshev_polynomial_v,
        SPECIAL.chebyshev_polynomial_w,
        SPECIAL.shifted_chebyshev_polynomial_t,
        SPECIAL.shifted_chebyshev_polynomial_u,
        SPECIAL.shifted_chebyshev_polynomial_v,
        SPECIAL.shifted_chebyshev_polynomial_w,
        SPECIAL.hermite_polynomial_h,
        SPECIAL.hermite_polynomial_he,
        SPECIAL.laguerre_polynomial_l,
        SPECIAL.legendre_polynomial_p,
    ],
    ids=lambda function: str(function.__name__),
)
def test_polynomials_of_several_orders_at_once(function: Callable[..., torch.Tensor]) -> None:
    x = torch.tensor([0.3, -0.7, 0.9, 1.0, 1.4, 0.0, 0.2])
    order = torch.tensor([0, 1, 2, 5, 4, -1, 9])
    inputs = [(x[:count], order[:count]) for count in (7, 1, 4)]
    assert find_differences(Row("", function, inputs, tolerance=1e-3)) == []


@pytest.mark.parametrize("function", [torch.logaddexp, torch.logaddexp2], ids=["logaddexp", "logaddexp2"])
def test_sums_of_powers_do_not_overflow(function: Callable[..., torch.Tensor]) -> None:
    left = torch.tensor([1.0, 300.0, -300.0, math.inf, -math.inf, math.inf, 5.0])
    right = torch.tensor([2.0, 301.0, -300.0, math.inf, -math.inf, -math.inf, -math.inf])
    inputs = [(left[:count], right[:count]) for count in (7, 1, 4)]
    assert find_differences(Row("", function, inputs)) == []


def test_the_comparison_notices_another_function() -> None:
    assert compare(Row("", SPECIAL.bessel_j1, places(9)), export(Row("", SPECIAL.bessel_j0, places(9)))[0])


NUMBERS = torch.tensor([-7, 100, -1, 0, -128, 127, 5, -64, 33])
PLACES_TO_SHIFT = torch.tensor([0, 1, 3, 7, 2, 6, 1, 5, 4])
OUTSIDE = torch.tensor([-1, 8, 31, 32, 62, 63, 64, 70, -5])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.parametrize(
    "shift", [operator.rshift, operator.lshift, torch.bitwise_right_shift, torch.bitwise_left_shift]
)
def test_shifts_of_integers_of_both_signs_are_those_of_torch(shift: Callable[..., torch.Tensor], dtype) -> None:
    numbers, counts = NUMBERS.to(dtype), PLACES_TO_SHIFT.to(dtype)
    outside = counts if dtype is torch.uint8 else OUTSIDE.clamp(max=torch.iinfo(dtype).max).to(dtype)
    inputs = [(numbers[:count], places[:count]) for count, places in ((9, counts), (1, counts), (9, outside))]
    assert find_differences(Row("", lambda x, y: (shift(x, y), shift(x, 3), shift(5, y)), inputs, tolerance=0)) == []


def test_shifts_at_the_ends_of_64_bits_are_those_of_torch() -> None:
    ends = torch.tensor([-(2**63), 2**63 - 1, -(2**62) - 1, 2**62 + 3, -1])
    inputs = [(ends, torch.tensor(counts)) for counts in ([1, 2, 3, 4, 5], [63, 63, 62, 62, 63], [61, 64, -1, 0, 61])]
    assert find_differences(Row("", lambda x, y: (x >> y, x << y), inputs, tolerance=0)) == []


def test_a_shift_of_a_narrow_dtype_by_a_wide_one_has_the_wide_one() -> None:
    inputs = [(NUMBERS[:count].int(), PLACES_TO_SHIFT[:count] * 5) for count in (9, 1, 4)]
    assert find_differences(Row("", lambda x, y: (x >> y, x << y, y >> x), inputs, tolerance=0)) == []
