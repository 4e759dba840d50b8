"""Predict counts of a call at a larger size from counts at smaller ones, where these follow a polynomial.

Elements and operators of most models are quadratic in a size at the most. Three counts give the quadratic; the fourth
decides whether it holds. A count on tensors without memory takes as long as a small call for each operator, so a
prediction spares most of the work of an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from fractions import Fraction

from anyshape.modules.cost import Counted

_LARGE_ENOUGH = 256  # the size of the count that decides: beyond it nothing is counted
_OFF = Fraction(1, 50)  # relative: sizes that are halved and rounded up are no exact polynomial

SizeCounts = Sequence[tuple[int, Counted]]


def predict_counts(counted: SizeCounts, size: int) -> Counted | None:
    """The counts at this size; None unless the last of at least four counts is at the quadratic through the three before it."""
    if len(counted) < 4 or counted[-1][0] < _LARGE_ENOUGH:
        return None
    *known, (last, measured) = counted[-4:]
    expected = zip(_at(known, last), astuple(measured), strict=True)
    if any(abs(one - other) > _OFF * other for one, other in expected):
        return None
    return Counted(*(max(0, int(each)) for each in _at(counted[-3:], size)))


def _at(known: SizeCounts, size: int) -> list[Fraction]:
    """Each number of the counts on the quadratic through three of them."""
    weights = []
    for place, (at, _) in enumerate(known):
        others = [other for index, (other, _) in enumerate(known) if index != place]
        weight = Fraction(1)
        for other in others:
            weight *= Fraction(size - other, at - other)
        weights.append(weight)
    columns = zip(*(astuple(each) for _, each in known), strict=True)
    return [
        sum((weight * number for weight, number in zip(weights, column, strict=True)), Fraction()) for column in columns
    ]
