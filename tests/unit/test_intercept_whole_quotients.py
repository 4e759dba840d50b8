"""Rounded quotients of integers are terms of integers, and have the values that Python computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import CeilToInt, FloatTrueDiv, FloorToInt, IntTrueDiv, ToFloat, TruncToInt

from anyshape.intercept.whole_quotients import quotients_rounded_as_integers

N = sympy.Symbol("n", integer=True, positive=True)
M = sympy.Symbol("m", integer=True, positive=True)

# the float as torch writes it, and as Python computes it
SUMS: list[tuple[Any, Callable[[int], float]]] = [
    (IntTrueDiv(N - 4, 1) + 1.0, lambda n: (n - 4) / 1 + 1),
    (IntTrueDiv(N - 4, 3) + 1.0, lambda n: (n - 4) / 3 + 1),
    (FloatTrueDiv(ToFloat(N), 7.0) - 2.0, lambda n: n / 7.0 - 2),
    (ToFloat(N) * 0.75, lambda n: n * 0.75),
    (ToFloat(N) * -1.5 + 4.0, lambda n: n * -1.5 + 4),
    (IntTrueDiv(N, 1) + IntTrueDiv(3 * N, 4), lambda n: n / 1 + 3 * n / 4),
    (IntTrueDiv(N + 2, N + 2) + ToFloat(N), lambda n: (n + 2) / (n + 2) + n),
]


@pytest.mark.parametrize(("term", "value"), SUMS, ids=lambda each: str(each) if isinstance(each, sympy.Basic) else "")
@pytest.mark.parametrize(
    ("kind", "rounding"), [(CeilToInt, math.ceil), (FloorToInt, math.floor)], ids=["ceil", "floor"]
)
def test_a_rounded_sum_has_the_value_of_python(kind: Any, rounding: Any, term: Any, value: Any) -> None:
    with quotients_rounded_as_integers():
        rounded = kind(term)
    assert not rounded.has(IntTrueDiv, FloatTrueDiv, ToFloat)
    assert all(int(rounded.subs(N, n)) == rounding(value(n)) for n in range(1, 60))


def test_trunc_is_written_with_integers_where_the_quotient_is_not_negative() -> None:
    with quotients_rounded_as_integers():
        assert TruncToInt(IntTrueDiv(N, 3)) == FloorToInt(IntTrueDiv(N, 3))
        assert TruncToInt(ToFloat(N - 5)) == N - 5
        assert TruncToInt(IntTrueDiv(N - 50, 3)).has(TruncToInt)


@pytest.mark.parametrize(
    "term",
    [
        IntTrueDiv(N, 2) + IntTrueDiv(M, 3),
        IntTrueDiv(N, M),
        ToFloat(N) * 0.1,
        IntTrueDiv(N, 2) * 0.5,
        FloatTrueDiv(ToFloat(N), 2.5),
    ],
    ids=str,
)
def test_other_floats_stay_as_they_are(term: Any) -> None:
    with quotients_rounded_as_integers():
        assert CeilToInt(term).has(CeilToInt)


def test_afterwards_torch_writes_its_own_terms() -> None:
    term = IntTrueDiv(M + 11, 5)
    with quotients_rounded_as_integers():
        assert not CeilToInt(term).has(CeilToInt)
    assert CeilToInt(IntTrueDiv(M + 12, 5)).has(CeilToInt)
