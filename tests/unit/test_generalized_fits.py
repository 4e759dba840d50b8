"""Numbers seen at some sizes are explained by the expression that made them, or by nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from anyshape.capture.generalized.fit_forms import Points, roundings
from anyshape.capture.generalized.fit_integers import fit_integers
from anyshape.capture.generalized.fit_reals import evaluate_real, fit_reals
from anyshape.domain import Ref, evaluate

SEEN = [(3, 5), (7, 11), (5, 16), (2, 12), (11, 29), (13, 24), (1, 1), (2, 2), (4, 1), (1, 37), (6, 97), (9, 8)]
UNSEEN = [(1, 64), (8, 3), (12, 250), (2, 7), (30, 21), (1, 9)]

INTEGERS: dict[str, Callable[[int, int], int]] = {
    "constant": lambda b, t: 7,
    "affine in two": lambda b, t: 2 * t - b + 1,
    "product": lambda b, t: 4 * b * t + 3,
    "floor": lambda b, t: t // 4,
    "ceiling": lambda b, t: -(-t // 4),
    "multiple below": lambda b, t: t - t % 3,
    "twice a remainder": lambda b, t: 2 * (t % 6) + 3,
    "pad to a multiple": lambda b, t: (8 - t % 8) % 8,
    "product with a ceiling": lambda b, t: b * ((t + 3) // 4),
    "least": lambda b, t: min(t, 8),
    "greatest": lambda b, t: max(t - 8, 0),
    "quotient of two": lambda b, t: t // b,
    "remainder of two": lambda b, t: t % b,
    "triangle": lambda b, t: t * (t - 1) // 2,
    "apart": lambda b, t: abs(b - t),
    "share": lambda b, t: int(t * 0.7),
    "share rounded up": lambda b, t: math.ceil(t / 1.5),
    "share, one at least": lambda b, t: max(1, int(t * 0.3)),
    "quotient, at most eight": lambda b, t: min(t // 3, 8),
    "share rounded to the nearest": lambda b, t: round(t * 0.75),
    "power of two above": lambda b, t: 1 << (t - 1).bit_length(),
    "padding to a power of two": lambda b, t: 2 ** math.ceil(math.log2(t)) - t,
    "how often it halves": lambda b, t: t.bit_length() + 2,
    "whole logarithm": lambda b, t: int(math.log(t) + 1),
    "half of a padding": lambda b, t: (math.ceil(t / 4) * 4 - t) // 2,
    "other half of a padding": lambda b, t: -t % 16 - (-t % 16) // 2,
}
REALS: dict[str, Callable[[int, int], float]] = {
    "root": lambda b, t: math.sqrt(t),
    "reciprocal root": lambda b, t: 1 / math.sqrt(t),
    "logarithm": lambda b, t: math.log(t + 1),
    "half": lambda b, t: t / 2,
    "ratio": lambda b, t: b / t,
    "angle": lambda b, t: 2 * math.pi / t,
    "binary logarithm": lambda b, t: math.log2(t + 1),
    "reciprocal of a floor": lambda b, t: 1 / (t // 5 + 1),
    "less than one": lambda b, t: 1 - 1 / (t + 1),
}


def _points(pairs: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"b": b, "t": t} for b, t in pairs]


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_expression_is_found_and_predicts(name: str) -> None:
    rule = INTEGERS[name]
    found = fit_integers(np.array([rule(b, t) for b, t in SEEN]), Points(_points(SEEN)))
    assert found is not None
    assert [evaluate(found, point) for point in _points(UNSEEN)] == [rule(b, t) for b, t in UNSEEN], str(found)


@pytest.mark.parametrize("name", REALS)
def test_a_real_expression_is_found_and_predicts(name: str) -> None:
    rule = REALS[name]
    found = fit_reals(np.array([rule(b, t) for b, t in SEEN]), Points(_points(SEEN)))
    assert found is not None
    predicted = [evaluate_real(found, point) for point in _points(UNSEEN)]
    assert predicted == pytest.approx([rule(b, t) for b, t in UNSEEN], rel=1e-12), str(found)


def test_numbers_without_a_rule_are_not_explained() -> None:
    numbers = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 58, 9])
    assert fit_integers(numbers, Points(_points(SEEN))) is None
    assert fit_reals(np.exp(-numbers / 7.0), Points(_points(SEEN))) is None


def test_sizes_at_which_a_float_rounds_otherwise_than_its_fraction_are_told() -> None:
    rule = (Ref("t") * 29) // 100
    assert next(iter(roundings(rule))) == (Ref("t"), 100)
    assert int(100 * 0.29) != evaluate(rule, {"t": 100})
    assert list(roundings((Ref("t") * 3) // 4)) == []
