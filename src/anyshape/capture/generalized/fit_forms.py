"""Forms of integers that fits try: sums of columns with whole factors, powers that a size has reached, fractions of a size.

A point is an assignment of integers to names: dims in the main program, dims and step counters inside a loop, dims and
positions inside a constant tensor.

Sizes have whole-number arithmetic only: `(n // power + M) // (M + 1)`, with M above all sizes, is 1 where n has reached the
power and 0 below. `min(n // power, 1)` is the same, but torch adds guards when sizes are made of it.

A share of a size (`int(seq * 0.3)`) is taken as the simplest fraction that gives all values: 3/10. Where the user's float
gives another whole number than the fraction (`int(100 * 0.29)` is 28), `roundings` gives the sizes, to be traced too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from anyshape.domain import ROOT, Expr, Number, Op, Ref

Integers = NDArray[np.int64]
Column = tuple[Expr, Integers]

WORST = 2**62
_MOST_POWERS = 20
_MOST_BITS = 31  # of the size of an axis
_SIMPLE_DENOMINATOR = 20
_LARGEST_DENOMINATOR = 1000
_LARGEST_MODULUS = 64
_PARTS = (2, 3, 4)
_LONGEST = 4096


class Points:
    """The points of a fit, one array for each name."""

    def __init__(self, points: Sequence[Mapping[str, int]], learned: Sequence[Expr] = ()) -> None:
        names = list(points[0]) if points else []
        self.columns: dict[str, Integers] = {
            name: np.array([point[name] for point in points], dtype=np.int64) for name in names
        }
        self.count = len(points)
        self.learned = tuple(learned)

    def where(self, chosen: NDArray[np.bool_]) -> Points:
        """The chosen points alone."""
        part = Points((), self.learned)
        part.columns = {name: column[chosen] for name, column in self.columns.items()}
        part.count = int(chosen.sum())
        return part

    @cached_property
    def names(self) -> list[Column]:
        """Every name that varies, as an expression with its values."""
        return [(Ref(name), column) for name, column in self.columns.items() if len(np.unique(column)) > 1]

    @cached_property
    def atoms(self) -> list[Column]:
        """The names, and the expressions that other numbers of the same program turned out to be."""
        found = list(self.names)
        seen = {expr for expr, _ in found}
        for expr in self.learned:
            if expr not in seen:
                column = self.evaluate(expr)
                if column is not None and len(np.unique(column)) > 1:
                    found.append((expr, column))
                    seen.add(expr)
        return found

    def evaluate(self, expr: Expr) -> Integers | None:
        """The expression at all points; None where it has no value at one of them."""
        if isinstance(expr, Number):
            return np.full(self.count, expr.value, dtype=np.int64)
        if isinstance(expr, Ref):
            return self.columns.get(expr.name)
        assert isinstance(expr, Op)
        parts = [self.evaluate(part) for part in expr.args]
        values = [part for part in parts if part is not None]
        if len(values) != len(parts):
            return None
        return _apply(expr.symbol, values)


def _apply(symbol: str, values: list[Integers]) -> Integers | None:
    if symbol in ("min", "max"):
        reduce = np.minimum if symbol == "min" else np.maximum
        result = values[0]
        for value in values[1:]:
            result = reduce(result, value)
        return result
    if symbol == ROOT:
        return np.sqrt(np.maximum(values[0], 0)).astype(np.int64)  # a double has each root below 2**52 rounded rightly
    left, right = values
    if symbol in ("//", "%") and not right.all():
        return None
    operations = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod}
    result = operations[symbol](left, right)
    return None if np.abs(result).max(initial=0) > WORST else result


def combine(values: Integers, columns: tuple[Column, ...]) -> Expr | None:
    """values == a*first + b*second + ... + c with integers a, b, c; None if there are none."""
    if len(values) < len(columns) + 2:
        return None
    matrix = np.column_stack([column for _, column in columns] + [np.ones(len(values), dtype=np.int64)]).astype(float)
    solution = np.linalg.lstsq(matrix, values.astype(float), rcond=None)[0]
    if np.abs(solution).max() > 1e12:
        return None
    factors = np.rint(solution).astype(np.int64)
    total = np.full(len(values), factors[-1], dtype=np.int64)
    for (_, column), factor in zip(columns, factors, strict=False):
        total = total + factor * column
    if not (total == values).all():
        return None
    result: Expr = Number(int(factors[-1]))
    for (expr, _), factor in zip(columns, factors, strict=False):
        result = result + expr * int(factor)
    return result


def fit_bits(values: Integers, points: Points) -> Expr | None:
    """How often a size can be halved, and the power of two below or above it: as many powers of two as
    it has reached are its bits, and their sum is one less than the power of two above it."""
    for expr, column in points.names:
        for below in (1, 0):
            if (column < below).any():
                continue
            reached = [_reached(expr - below, column - below, 2**power) for power in range(_MOST_BITS)]
            for weight in (1, 2):
                total: Column = (Number(0), np.zeros_like(column))
                for power, (step, numbers) in enumerate(reached):
                    total = total[0] + step * weight**power, total[1] + numbers * weight**power
                for beside in ((), ((expr, column),)):  # a padding up to the power of two takes the size away
                    found = combine(values, (total, *beside))
                    if found is not None:
                        return found
    return None


def fit_logarithm(values: Integers, points: Points) -> Expr | None:
    """int(log(n)), to the base e or 10: how many powers a size has reached."""
    for expr, column in points.names:
        for base in (math.e, 10.0):
            powers = [math.ceil(base**power) for power in range(1, _MOST_POWERS)]
            count: Column = (Number(0), np.zeros_like(column))
            for power in powers:
                step, numbers = _reached(expr, column, power)
                count = count[0] + step, count[1] + numbers
            found = combine(values, (count,))
            if found is not None:
                return found
    return None


def fit_root(values: Integers, points: Points) -> Expr | None:
    """int(sqrt(n)) or ceil(sqrt(n))."""
    for expr, _ in points.names:
        for of in (expr, expr - 1):
            root = Op(ROOT, (of,))
            column = points.evaluate(root)
            found = None if column is None else combine(values, ((root, column),))
            if found is not None:
                return found
    return None


def _reached(expr: Expr, column: Integers, power: int) -> Column:
    """1 where the size has reached the power, 0 below it."""
    most = 2**_MOST_BITS
    return (expr // power + (most - 1)) // most, (column >= power).astype(np.int64)


def fit_simple_share(values: Integers, points: Points) -> Expr | None:
    """A share that people write with one digit or as a half, third, quarter."""
    return fit_share(values, points, _SIMPLE_DENOMINATOR)


def fit_share(values: Integers, points: Points, largest: int = _LARGEST_DENOMINATOR) -> Expr | None:
    """e * p // q, rounded down, up, or to the nearest, for a share p/q of a name: the one of the smallest q."""
    if (values < 0).any() or (values == values[0]).all():
        return None
    for expr, column in points.names:
        if (column <= 0).any():
            continue
        # However it is rounded, size * p / q is less than 1 away from the value: p / q lies between these two.
        low = max(Fraction(int(value) - 1, int(size)) for value, size in zip(values, column, strict=True))
        high = min(Fraction(int(value) + 1, int(size)) for value, size in zip(values, column, strict=True))
        for q in range(2, largest + 1) if low < high else ():
            numerators = np.arange(max(1, floor(low * q) + 1), ceil(high * q), dtype=np.int64)
            if len(numerators) and (found := _rounded(values, expr, column, numerators, q)) is not None:
                return found
    return None


def _rounded(values: Integers, expr: Expr, column: Integers, numerators: Integers, q: int) -> Expr | None:
    """The share of the first numerator that gives the values, rounded down, up, or to the nearest."""
    scaled = numerators[:, None] * column
    shifts = (0, q - 1, q // 2)
    right = [((scaled + shift) // q == values).all(axis=1) for shift in shifts]
    right += [(_nearest(scaled, q) == values).all(axis=1)] if q % 2 == 0 else []
    places = np.argwhere(np.stack(right, axis=1))
    if not len(places):
        return None
    first, way = (int(place) for place in places[0])
    number = expr * int(numerators[first])
    return (number + shifts[way]) // q if way < len(shifts) else _nearest_expr(number, q)


def _nearest(numbers: Integers, q: int) -> Integers:
    """numbers / q as Python's round() gives it: halves go to the even one."""
    up = (2 * numbers + q) // (2 * q)
    is_half = ((2 * numbers + q) % (2 * q) == 0).astype(np.int64)
    nearest: Integers = up - is_half * (up % 2)
    return nearest


def _nearest_expr(number: Expr, q: int) -> Expr:
    up = (number * 2 + q) // (2 * q)
    is_half = 1 - Op("min", ((number * 2 + q) % (2 * q), Number(1)))
    return up - is_half * (up % 2)


def fit_part_of_padding(values: Integers, points: Points) -> Expr | None:
    """((±e) % m + c) // k: a padding to a multiple, or what is above one, split into parts."""
    for expr, column in points.names:
        for sign in (-1, 1):
            for modulus in range(3, _LARGEST_MODULUS + 1):
                rest = (sign * column) % modulus
                for parts in _PARTS:
                    for offset in (0, parts - 1):
                        if ((rest + offset) // parts == values).all():
                            return ((expr * sign) % modulus + offset) // parts
    return None


def roundings(rule: Expr) -> Iterator[tuple[Ref, int]]:
    """Sizes at which the user's float (0.29) rounds to another whole number than the fraction that the rule has (29/100)."""
    if not isinstance(rule, Op):
        return
    for part in rule.args:
        yield from roundings(part)
    scaled = _scaled(rule.args[0]) if rule.symbol == "//" and isinstance(rule.args[1], Number) else None
    if scaled is None or not isinstance(rule.args[1], Number):
        return
    (name, p), q = scaled, rule.args[1].value
    sizes = np.arange(1, _LONGEST + 1, dtype=np.int64)
    differing = sizes[(sizes * (p / q)).astype(np.int64) != sizes * p // q]
    yield from ((name, int(size)) for size in differing[:2])


def _scaled(expr: Expr) -> tuple[Ref, int] | None:
    """name and factor of `name * factor`, whatever is added to it."""
    if isinstance(expr, Op) and expr.symbol in ("+", "-"):
        return next(filter(None, map(_scaled, expr.args)), None)
    if isinstance(expr, Op) and expr.symbol == "*":
        names = [part for part in expr.args if isinstance(part, Ref)]
        numbers = [part.value for part in expr.args if isinstance(part, Number)]
        return (names[0], numbers[0]) if len(names) == len(numbers) == 1 else None
    return None
