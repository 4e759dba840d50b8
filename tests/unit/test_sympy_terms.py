"""torch's terms with floats in them, in integer arithmetic: the same value at every size, or not translated."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import CeilToInt, FloatTrueDiv, FloorToInt, IntTrueDiv, ToFloat, TruncToInt

from anyshape.capture.sympy_terms import condition_of, expression_of
from anyshape.domain import Ref, evaluate
from anyshape.domain.condition import holds

N = sympy.Symbol("s0", integer=True, positive=True)
HALF = sympy.Float(0.5)
DIMS = {"s0": Ref("n")}


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


@pytest.mark.parametrize("divisor", [3, 10])
def test_a_quotient_that_is_rounded_is_not_translated(divisor: int) -> None:
    assert expression_of(CeilToInt(IntTrueDiv(N, divisor)), DIMS) is None


def test_a_step_that_is_rounded_is_not_translated() -> None:
    assert expression_of(CeilToInt(FloatTrueDiv(ToFloat(N), sympy.Float(0.1))), DIMS) is None


def test_floats_are_compared_exactly() -> None:
    found = condition_of(sympy.Ge(ToFloat(N) * HALF, sympy.Float(2.5)), DIMS)
    assert found is not None
    assert [holds(found, {"n": size}) for size in (4, 5, 6)] == [False, True, True]
