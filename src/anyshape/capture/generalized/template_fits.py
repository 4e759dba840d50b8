"""All fits of one template: what was explained, by what, and from how many points.

The same values at the same points are explained once; expressions that turned up for one number are tried first for the
others, since a program uses the same sizes again and again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from anyshape.capture.generalized.fit_forms import Points
from anyshape.capture.generalized.fit_integers import fit_integers
from anyshape.capture.generalized.fit_reals import Part, Real, evaluate_real, fit_jumps, fit_reals
from anyshape.domain import Expr, Number, Op, Sizes, dims_of, simplify

_MOST_POINTS = 160
_MOST_LEARNED = 24
_FEWEST_REPETITIONS = 5
_CLOSE = 1e-11


class Fits:
    """Explanations of numbers, remembered."""

    def __init__(self, counters: Collection[str] = ()) -> None:
        self._counters = frozenset(counters)
        self._known: dict[Any, Any] = {}
        self.learned: dict[Expr, None] = {}

    def integers(self, seen: Sequence[tuple[Sizes, int]], near: Sequence[Expr] = ()) -> Expr | None:
        """The simplest integer expression that gives each of these numbers at its point; None if there is none.

        `near` are sizes that the number is likely to be made of. A number that values decide is None, and has no expression.
        """
        if any(value is None for _, value in seen):
            return None
        if len({value for _, value in seen}) == 1:
            return Number(int(seen[0][1]))
        key = (*near, *((tuple(point.items()), value) for point, value in seen))
        if key not in self._known:
            few = _thinned(seen)
            points = Points([point for point, _ in few], (*near, *reversed(self.learned)))
            found = fit_integers(np.array([value for _, value in few], dtype=np.int64), points)
            if found is not None and not (_explains(found, seen) and self._is_seen_enough(found, points)):
                found = None
            found = found or _integer_steps(seen)
            self._known[key] = found
            if isinstance(found, Op) and len(self.learned) < _MOST_LEARNED:
                self.learned[found] = None
        result: Expr | None = self._known[key]
        return result

    def reals(self, seen: Sequence[tuple[Sizes, float]], near: Sequence[Expr] = ()) -> Real | float | None:
        """An expression that gives these floats; a float where all are equal."""
        if len({value for _, value in seen}) == 1 or all(value != value for _, value in seen):
            return float(seen[0][1])
        key = ("real", *near, *((tuple(point.items()), value) for point, value in seen))
        if key not in self._known:
            few = _thinned(seen)
            points = Points([point for point, _ in few], (*near, *reversed(self.learned)))
            real = fit_reals(np.array([value for _, value in few], dtype=np.float64), points)
            is_right = real is not None and (len(few) == len(seen) or _explains_reals(real, seen))
            self._known[key] = real if is_right else _real_step(seen)
        result: Real | None = self._known[key]
        return result

    def _is_seen_enough(self, expr: Expr, points: Points) -> bool:
        """A bent rule of a counter needs more repetitions than a straight one: 1, 2, 4 is also max(2*i, i + 1), and a
        quotient that has risen once may rise again anywhere."""
        bent = set(_bent_names(expr)) & self._counters
        if any(len(np.unique(points.columns[name])) < _FEWEST_REPETITIONS for name in bent):
            return False
        return all(_rises_again(quotient, points) for quotient in _quotients(expr, self._counters))

    @property
    def explained(self) -> tuple[Expr, ...]:
        """Every expression that was found."""
        found = (value for value in self._known.values() if isinstance(value, Expr))
        return tuple(dict.fromkeys(found))


def _bent_names(expr: Expr) -> Iterator[str]:
    """The names in which an expression is not affine."""
    if not isinstance(expr, Op):
        return
    straight = expr.symbol in ("+", "-") or (expr.symbol == "*" and any(isinstance(part, Number) for part in expr.args))
    for part in expr.args:
        yield from _bent_names(part) if straight else dims_of(part)


def _quotients(expr: Expr, names: Collection[str]) -> Iterator[Expr]:
    """Quotients by a number, those in remainders too, of what has one of these names in it."""
    if not isinstance(expr, Op):
        return
    for part in expr.args:
        yield from _quotients(part, names)
    if expr.symbol in ("//", "%") and isinstance(expr.args[1], Number) and set(dims_of(expr.args[0])) & set(names):
        yield expr.args[0] // expr.args[1]


def _rises_again(quotient: Expr, points: Points) -> bool:
    values = points.evaluate(quotient)
    return values is not None and len(np.unique(values)) > 2


def _explains(expr: Expr, seen: Sequence[tuple[Sizes, int]]) -> bool:
    values = Points([point for point, _ in seen]).evaluate(expr)
    return values is not None and bool((values == np.array([value for _, value in seen])).all())


def _explains_reals(real: Real, seen: Sequence[tuple[Sizes, float]]) -> bool:
    """Whether the rule gives every number that was seen, to a few units in the last place."""
    return all(abs(evaluate_real(real, point) - value) <= _CLOSE * max(1.0, abs(value)) for point, value in seen)


def _integer_steps(seen: Sequence[tuple[Sizes, int]]) -> Expr | None:
    found = fit_jumps(seen)
    if found is None:
        return None
    first, steps = found
    total: Expr = Number(int(first))
    for step, difference in steps:
        total = total + step * int(difference)
    return simplify(total)


def _real_step(seen: Sequence[tuple[Sizes, float]]) -> Real | None:
    """One jump: a product and a shift cannot express more."""
    found = fit_jumps(seen)
    if found is None or len(found[1]) != 1:
        return None
    ((step, difference),) = found[1]
    return Real(float(difference), (Part("", step),), float(found[0]))


def _thinned(seen: Sequence[tuple[Sizes, Any]]) -> list[tuple[Sizes, Any]]:
    """Enough points to distinguish expressions, spread evenly, the ends included."""
    if len(seen) <= _MOST_POINTS:
        return list(seen)
    return [seen[index] for index in np.linspace(0, len(seen) - 1, _MOST_POINTS).astype(int)]
