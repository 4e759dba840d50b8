"""Integers seen at many points -> the simplest expression of the names that gives all of them.

The order is the preference: constant, affine, product, quotient, least and greatest. An expression is returned only if it
is right at every point; that it is right elsewhere is for traces to show that were not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from anyshape.capture.generalized.fit_forms import (
    Column,
    Integers,
    Points,
    combine,
    fit_bits,
    fit_logarithm,
    fit_part_of_padding,
    fit_root,
    fit_share,
    fit_simple_share,
)
from anyshape.domain import Expr, Number, Op, simplify

_LARGEST_DIVISOR = 64
_SMALL_DIVISOR = 8
_FACTORS = 3
_FEWEST_FREE = 5  # values beyond a limit, to learn from
_SLOPES = (1, 2, 3, 4, 5, 6, 7, 8, 16, -1, -2)


def fit_integers(values: Integers, points: Points) -> Expr | None:
    """The simplest expression that gives these values at these points, or None."""
    for attempt in _ATTEMPTS:
        found = attempt(values, points)
        if found is not None:
            return simplify(found)
    return None


def _constant(values: Integers, points: Points) -> Expr | None:
    return Number(int(values[0])) if (values == values[0]).all() else None


def _affine(values: Integers, points: Points) -> Expr | None:
    for count in range(1, min(3, len(points.names)) + 1):
        for columns in combinations(points.names, count):
            found = combine(values, columns)
            if found is not None:
                return found
    return None


def _products(points: Points) -> Iterator[Column]:
    for degree in (2, 3):
        for parts in combinations_with_replacement(points.atoms[:6], degree):
            expr, column = parts[0]
            for other, numbers in parts[1:]:
                expr, column = expr * other, column * numbers
            yield expr, column


def _product(values: Integers, points: Points) -> Expr | None:
    for product in _products(points):
        found = combine(values, (product,))
        if found is not None:
            return found
    for product in _products(points):
        for name in points.names:
            found = combine(values, (product, name))
            if found is not None:
                return found
            halved = combine(2 * values, (product, name))  # n * (n - 1) // 2
            if halved is not None:
                return halved // 2
    return None


def _learned(values: Integers, points: Points) -> Expr | None:
    for count in (1, 2):
        for columns in combinations(points.atoms[:12], count):
            found = combine(values, columns)
            if found is not None:
                return found
    return None


def _quotient(values: Integers, points: Points) -> Expr | None:
    """a * ((e + c) // k) + b, with one of the names added or taken away: ceilings and remainders are of this form."""
    for rest, left in _without_names(values, points):
        for expr, column in _dividends(points):
            found = _divided(left, expr, column)
            if found is not None:
                return found + rest
    for expr, column in points.atoms[len(points.names) :][:6]:
        for sign in (-1, 1):  # a remainder of a size: (3 - n % 3) % 3 is 3 * ((n + 2) // 3) - n
            found = _divided(values - sign * column, expr, column)
            if found is not None:
                return found + expr * sign
    return None


def _plain_quotient(values: Integers, points: Points) -> Expr | None:
    """(name + c) // k for a small k: simpler than any share that has a numerator, too."""
    for expr, column in points.names:
        found = _divided(values, expr, column, _SMALL_DIVISOR)
        if found is not None:
            return found
    return None


def _without_names(values: Integers, points: Points) -> Iterator[tuple[Expr, Integers]]:
    yield Number(0), values
    for sign in (1, -1):
        for expr, column in points.names:
            yield expr * sign, values - sign * column


def _dividends(points: Points) -> Iterator[Column]:
    yield from points.names
    for (first, one), (second, other) in combinations(points.names, 2):
        yield first + second, one + other
        yield first - second, one - other
    for (first, one), (second, other) in combinations_with_replacement(points.names, 2):
        yield first * second, one * other
    yield from points.atoms[len(points.names) :][:6]
    for expr, column in points.names:
        yield from ((expr * factor, column * factor) for factor in (2, 3, 5))


def _divided(values: Integers, expr: Expr, column: Integers, largest: int = _LARGEST_DIVISOR) -> Expr | None:
    low, high = int(column.argmin()), int(column.argmax())
    rise = int(values[high] - values[low])
    if rise == 0 and (values != values[0]).any():
        return None
    for divisor in (*range(2, largest + 1), *(_far_divisors(column) if largest > _SMALL_DIVISOR else ())):
        offsets = np.arange(divisor, dtype=np.int64)[:, None]
        if divisor > _LARGEST_DIVISOR:
            offsets = offsets[[0, 1, -1]]
        quotients = (column[None, :] + offsets) // divisor
        run = quotients[:, high] - quotients[:, low]
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(
                (run != 0) & (rise % np.where(run == 0, 1, run) == 0), rise // np.where(run == 0, 1, run), 0
            )
        shifts = values[low] - factors * quotients[:, low]
        right = (factors[:, None] * quotients + shifts[:, None] == values[None, :]).all(axis=1) & (factors != 0)
        if right.any():
            place = _natural(right, len(offsets))
            quotient = (expr + int(offsets[place, 0])) // divisor
            return quotient * int(factors[place]) + int(shifts[place])
    return None


def _far_divisors(column: Integers) -> list[int]:
    """Large sizes that were seen with both neighbours and at twice as much, as numbers of the user's code are."""
    sizes = {int(size) for size in column}
    return sorted(size for size in sizes if size > _LARGEST_DIVISOR and {size - 1, size + 1, 2 * size} <= sizes)


def _remainder(values: Integers, points: Points) -> Expr | None:
    """a * (e % k) + b"""
    for expr, column in points.atoms[: len(points.names) + 4]:
        for divisor in (*range(2, _LARGEST_DIVISOR + 1), *_far_divisors(column)):
            found = combine(values, ((expr % divisor, column % divisor),))
            if found is not None:
                return found
    return None


def _natural(right: NDArray[np.bool_], divisor: int) -> int:
    """Rounding down or up is what people write; other offsets only where neither explains the values."""
    for offset in (0, divisor - 1):
        if right[offset]:
            return offset
    return int(right.argmax())


def _factored(values: Integers, points: Points, depth: int = _FACTORS) -> Expr | None:
    """name * (something simpler): B * ((T + 3) // 4)."""
    if depth == 0:
        return None
    for expr, column in points.atoms:
        if not column.all() or (values % column).any():
            continue
        inner = values // column
        for attempt in (_constant, _affine, _product, _quotient, _extreme, _between):
            found = attempt(inner, points)
            if found is not None:
                return expr * found
        deeper = _factored(inner, points, depth - 1)
        if deeper is not None:
            return expr * deeper
    return None


def _between(values: Integers, points: Points) -> Expr | None:
    """One name divided by another: T // B, T % B, rounded up too."""
    for (first, one), (second, other) in ((a, b) for a in points.atoms[:6] for b in points.atoms[:6] if a[0] != b[0]):
        if not other.all():
            continue
        for offset in (Number(0), second - 1):
            shift = points.evaluate(offset)
            assert shift is not None
            quotient: Column = ((first + offset) // second, (one + shift) // other)
            remainder: Column = (first % second, one % other)
            for column in (quotient, remainder):
                found = combine(values, (column,))
                if found is not None:
                    return found
    return None


def _extreme(values: Integers, points: Points) -> Expr | None:
    """min or max of two simple expressions, each as tight as it can be."""
    bases: list[Column] = [(Number(0), np.zeros_like(values))]
    bases += [(expr * slope, column * slope) for expr, column in points.atoms[:6] for slope in _SLOPES]
    bases += [
        (a * slope + b, x * slope + y)
        for (a, x), (b, y) in ((p, q) for p in points.names for q in points.names if p[0] != q[0])
        for slope in (1, -1)
    ]
    for symbol, tightest, reduce in (("min", np.max, np.minimum), ("max", np.min, np.maximum)):
        bounds = [(expr, int(tightest(values - column)), column) for expr, column in bases]
        touching = [(expr, shift, column + shift) for expr, shift, column in bounds if (column + shift == values).any()]
        for (first, shift, one), (second, other_shift, other) in combinations(touching, 2):
            if (reduce(one, other) == values).all():
                return Op(symbol, (first + shift, second + other_shift))
    return None


def _clamped(values: Integers, points: Points) -> Expr | None:
    """max(c, something) or min(c, something), with a number or a name: `max(1, int(seq * 0.3))`, `min(seq, 4*(i//4) + 4)`."""
    ends: list[tuple[str, Expr, Integers]] = [
        ("max", Number(int(values.min())), np.full_like(values, values.min())),
        ("min", Number(int(values.max())), np.full_like(values, values.max())),
    ]
    for expr, column in points.names:
        ends += [("min", expr, column)] if (values <= column).all() else []
        ends += [("max", expr, column)] if (values >= column).all() else []
    for symbol, end, limits in ends:
        free = values != limits
        if free.sum() < _FEWEST_FREE or free.all():
            continue
        inside = points.where(free)
        for attempt in (fit_simple_share, _quotient, fit_share, _product):
            found = attempt(values[free], inside)
            bounded = Op(symbol, (end, found)) if found is not None else None
            if bounded is not None and _gives(bounded, values, points):
                return bounded
    return None


def _gives(expr: Expr, values: Integers, points: Points) -> bool:
    actual = points.evaluate(expr)
    return actual is not None and bool((actual == values).all())


_ATTEMPTS: tuple[Callable[[Integers, Points], Expr | None], ...] = (
    _constant,
    _affine,
    _learned,
    _product,
    _plain_quotient,
    fit_simple_share,
    _quotient,
    _remainder,
    _extreme,
    _factored,
    _between,
    fit_share,
    _clamped,
    fit_part_of_padding,
    fit_root,
    fit_bits,
    fit_logarithm,
)
