"""torch's terms with floats in them, in integer arithmetic: the same value at every size, or not translated."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import sympy
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatTrueDiv,
    FloorToInt,
    IntTrueDiv,
    RoundToInt,
    ToFloat,
    TruncToInt,
)

from anyshape.capture.sympy_terms import condition_of, expression_of
from anyshape.domain import Ref, evaluate
from anyshape.domain.condition import holds

N = sympy.Symbol("s0", integer=True, positive=True)
M = sympy.Symbol("s1", integer=True, positive=True)
HALF = sympy.Float(0.5)
DIMS = {"s0": Ref("n"), "s1": Ref("m")}


@pytest.mark.parametrize(
    "term",
    [
        CeilToInt(FloatTrueDiv(ToFloat(N) - HALF, sympy.Float(1.0))),  # arange(0.5, n)
        CeilToInt(FloatTrueDiv(ToFloat(N), sympy.Float(0.5))),  # arange(0, n, 0.5)
        FloorToInt(ToFloat(N) * HALF),
        FloorToInt(IntTrueDiv(N, 8)),
        TruncToInt(IntTrueDiv(5 - N, 4)),
        TruncToInt(FloatTrueDiv(ToFloat(7 - N) + sympy.Float(0.25), sympy.Float(2.0))),
    ],
    ids=str,
)
def test_exact_floats_are_integer_arithmetic(term: sympy.Expr) -> None:
    found = expression_of(term, DIMS)
    assert found is not None
    for size in range(1, 60):
        assert evaluate(found, {"n": size}) == int(term.xreplace({N: sympy.Integer(size)}))


@pytest.mark.parametrize("divisor", [3, 4, 6, 10])
@pytest.mark.parametrize(
    ("rounding", "expected"),
    [(CeilToInt, math.ceil), (FloorToInt, math.floor), (TruncToInt, int), (RoundToInt, round)],
    ids=lambda each: each.__name__,
)
def test_a_quotient_of_integers_is_rounded_as_python_does_it(
    rounding: type, expected: Callable[[float], int], divisor: int
) -> None:
    found = expression_of(rounding(IntTrueDiv(N - 9, divisor)), DIMS)
    assert found is not None
    far = [2**power + step for power in (31, 40, 52) for step in range(-7, 8)]
    for size in (*range(1, 100), *far):
        assert evaluate(found, {"n": size}) == expected((size - 9) / divisor)


def test_a_quotient_by_a_size_is_rounded_as_python_does_it() -> None:
    found = expression_of(RoundToInt(IntTrueDiv(N, M)), DIMS)
    assert found is not None
    for above in range(1, 60):
        for below in range(1, 30):
            assert evaluate(found, {"n": above, "m": below}) == round(above / below)


def test_a_step_that_is_rounded_is_not_translated() -> None:
    assert expression_of(CeilToInt(FloatTrueDiv(ToFloat(N), sympy.Float(0.1))), DIMS) is None


def test_floats_are_compared_exactly() -> None:
    found = condition_of(sympy.Ge(ToFloat(N) * HALF, sympy.Float(2.5)), DIMS)
    assert found is not None
    assert [holds(found, {"n": size}) for size in (4, 5, 6)] == [False, True, True]


@pytest.mark.parametrize("bound", [1.5, 0.75, 3.0])
@pytest.mark.parametrize("comparison", [sympy.Gt, sympy.Ge, sympy.Lt, sympy.Eq, sympy.Ne])
def test_quotients_of_sizes_are_compared_exactly_with_fractions(comparison: type, bound: float) -> None:
    found = condition_of(comparison(IntTrueDiv(N, M), sympy.Float(bound)), DIMS)
    assert found is not None
    for height in range(1, 40):
        for width in range(1, 40):
            expected = bool(comparison(sympy.Float(height / width), sympy.Float(bound)))
            assert holds(found, {"n": height, "m": width}) == expected


def test_a_third_is_compared_exactly_with_an_integer() -> None:
    found = condition_of(sympy.Eq(FloatTrueDiv(ToFloat(N), sympy.Integer(21)), ToFloat(M)), DIMS)
    assert found is not None
    assert [holds(found, {"n": size, "m": 2}) for size in (41, 42, 43)] == [False, True, False]


@pytest.mark.parametrize(
    "term",
    [
        sympy.Gt(IntTrueDiv(N, M), IntTrueDiv(M, 3)),  # both are rounded
        sympy.Gt(IntTrueDiv(N, M - 7), sympy.Float(1.5)),  # the sign of what divides is not known
        sympy.Gt(IntTrueDiv(N, 3), sympy.Float(7 / 3)),  # as near as rounding is
    ],
    ids=str,
)
def test_quotients_that_may_be_rounded_onto_the_other_side_are_not_translated(term: sympy.Expr) -> None:
    assert condition_of(term, DIMS) is None
