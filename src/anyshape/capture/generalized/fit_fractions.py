"""Integers that people make with floats and halves: `int(seq * 0.3)`, `math.ceil(seq / 1.5)`, half of a padding.

A share of a size is taken as the simplest fraction that gives all values: 0.3 as 3/10. Where the user's float gives another
whole number than the fraction (`int(100 * 0.29)` is 28), `roundings` says at which sizes, so that they are traced too.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

import numpy as np

from anyshape.capture.generalized.samples import Integers, Points
from anyshape.domain import Expr, Number, Op, Ref

_SIMPLE_DENOMINATOR = 20
_LARGEST_DENOMINATOR = 1000
_LARGEST_MODULUS = 64
_PARTS = (2, 3, 4)
_LONGEST = 4096


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
    """Sizes at which the float that a share stands for, multiplied, rounds to another whole number than the share."""
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
