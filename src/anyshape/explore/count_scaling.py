"""Counts at several sizes of one dim, and the counts that follow from them at larger sizes.

Elements and operators of most models are quadratic in a size at the most. Three counts give the quadratic; the fourth
decides whether it holds. A count on tensors without memory takes as long as a small call for each operator, so a
prediction spares most of the work of an estimate.

A call of many operators takes long to count, so it is counted at smaller sizes: the count that decides may be at 64, and
three counts that are on a line are enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Literal

from anyshape.intercept.operation_counts import Counted

_LARGE_ENOUGH = 256  # the size of the count that decides: beyond it nothing is counted
_LARGE_ENOUGH_IF_LONG = 64
_OFF = Fraction(1, 50)  # relative: sizes that are halved and rounded up are no exact polynomial
_BETWEEN, _FIRST_STEP = 24, 64
_STEP = 4
STEEPEST = 3.0

Count = Literal["operators", "elements", "answered", "multiplied", "computed"]
"""One of the numbers that are counted."""
SizeCounts = Sequence[tuple[int, Counted]]


@dataclass(frozen=True)
class Scaling:
    """Counts at several sizes of one dim, in ascending order."""

    counted: list[tuple[int, Counted]] = field(default_factory=list)

    def ratio(self, size: int, base: Counted, count: Count) -> float:
        """How many times the base's count the count at this size is: a power of the size between two counts and beyond."""
        of = attrgetter(count)
        if len(self.counted) == 1 or size <= self.counted[0][0]:
            return max(of(self.counted[0][1]), 1) / max(of(base), 1)
        after = min(bisect_left(self.counted, size, 1, key=lambda each: each[0]), len(self.counted) - 1)
        (x0, y0), (x1, y1) = (
            (_place(at), math.log(max(of(each), 1))) for at, each in self.counted[after - 1 : after + 1]
        )
        slope = (y1 - y0) / (x1 - x0)
        if size > self.counted[after][0]:  # beyond the last one
            slope = min(max(slope, 0.0), STEEPEST)
        return math.exp(y1 + slope * (_place(size) - x1) - math.log(max(of(base), 1)))


def _place(size: int) -> float:
    """The logarithm of a size; a size of 0 has one of its own, below that of 1."""
    return math.log(max(size, 0.5))


def next_counted_size(counted: SizeCounts, *, is_long: bool = False) -> int:
    """The next size at which a call is counted; `is_long`: it has many operators.

    Such a call is counted between the first sizes and 64 rather than beyond 64, where the first counts are on no line. Where
    the first size has the counts of the second, since no call could be counted there, two near sizes follow.
    """
    last = counted[-1][0]
    if is_long and len(counted) in (2, 3) and counted[0][1] is counted[1][1]:
        return max(_FIRST_STEP, 2 * last if len(counted) == 2 else 3 * last // 2)
    is_gap = len(counted) >= 3 and counted[-2][0] < _BETWEEN and last >= _FIRST_STEP
    return _BETWEEN if is_long and is_gap else max(_FIRST_STEP, _STEP * last)


def predict_counts(counted: SizeCounts, size: int, *, is_long: bool = False) -> Counted | None:
    """The counts at this size; None unless the last of at least four counts is at the quadratic through the three before it.

    `is_long`: the call has many operators; the last of three counts at the line through the two before it is enough.
    """
    if counted[-1][0] < (_LARGE_ENOUGH_IF_LONG if is_long else _LARGE_ENOUGH):
        return None
    if len(counted) >= 4 and _is_on(counted[-4:]):
        return _rounded(_at(counted[-3:], size))
    if is_long and len(counted) >= 3 and _is_on(counted[-3:]):
        return _rounded(_at(counted[-2:], size))
    return None


def _is_on(counted: SizeCounts) -> bool:
    """Whether the last of these counts is at the polynomial through the others."""
    *known, (last, measured) = counted
    expected = zip(_at(known, last), astuple(measured), strict=True)
    return all(abs(one - other) <= _OFF * other for one, other in expected)


def _rounded(numbers: Sequence[Fraction]) -> Counted:
    return Counted(*(max(0, int(each)) for each in numbers))


def _at(known: SizeCounts, size: int) -> list[Fraction]:
    """Each number of the counts on the polynomial through all of them."""
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
