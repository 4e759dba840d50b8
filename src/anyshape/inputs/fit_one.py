"""An integer function of one size, found from its values: affine, floor division, rounding, remainder, cut-off, square.

Each form is solved from the samples and must then give every one of them; the simplest form that does is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from math import gcd, isqrt

from anyshape.domain import Expr, Number, Op, Ref

Samples = Mapping[int, int]  # size of the dim -> value

_DIVISORS = range(2, 65)
_FACTORS = range(1, 5)
_QUADRATIC_DIVISORS = range(2, 17)


def fit_one(name: str, samples: Samples) -> Expr | None:
    """The simplest expression of the dim that gives every sample, or None."""
    for form in _FORMS:
        for expr, function in form(Ref(name), samples):
            if all(function(size) == value for size, value in samples.items()):
                return expr
    return None


Found = Iterator[tuple[Expr, Callable[[int], int]]]


def _affine(dim: Ref, samples: Samples) -> Found:
    (low, at_low), (high, at_high) = min(samples.items()), max(samples.items())
    if high == low or (at_high - at_low) % (high - low):
        return
    factor = (at_high - at_low) // (high - low)
    offset = at_low - factor * low
    yield affine([(factor, dim)], offset), lambda size: factor * size + offset


def _quadratic(dim: Ref, samples: Samples) -> Found:
    points = sorted(samples.items())
    if len(points) < 4:
        return
    (a, at_a), (b, at_b), (c, at_c) = points[0], points[len(points) // 2], points[-1]
    # Newton's divided differences, over a common denominator so that integers stay integers.
    top = (at_c - at_a) * (b - a) - (at_b - at_a) * (c - a)
    bottom = (c - a) * (b - a) * (c - b)
    if bottom == 0 or top % bottom or (at_b - at_a - top // bottom * (b * b - a * a)) % (b - a):
        return
    square = top // bottom
    factor = (at_b - at_a - square * (b * b - a * a)) // (b - a)
    offset = at_a - square * a * a - factor * a
    yield affine([(square, dim * dim), (factor, dim)], offset), lambda d: square * d * d + factor * d + offset


def _divided(dim: Ref, samples: Samples) -> Found:
    for divisor in _DIVISORS:
        for factor in _FACTORS:
            if gcd(factor, divisor) > 1:
                continue
            offset = quotient_offset(((factor * size, value) for size, value in samples.items()), divisor)
            if offset is not None:
                yield _division(dim, factor, offset, divisor)


def _division(dim: Ref, factor: int, offset: int, divisor: int) -> tuple[Expr, Callable[[int], int]]:
    return affine([(factor, dim)], offset) // divisor, lambda size: (factor * size + offset) // divisor


def _rounded(dim: Ref, samples: Samples) -> Found:
    """Up or down to a multiple: k*((d + c)//k)."""
    shared = gcd(*samples.values())
    for step in _DIVISORS:
        if shared % step:
            continue
        offset = quotient_offset(((size, value // step) for size, value in samples.items()), step)
        if offset is not None:
            expr = step * (affine([(1, dim)], offset) // step)
            yield expr, lambda size, step=step, offset=offset: step * ((size + offset) // step)  # type: ignore[misc]


def _remainder(dim: Ref, samples: Samples) -> Found:
    for divisor in _DIVISORS:
        yield dim % divisor, lambda size, divisor=divisor: size % divisor  # type: ignore[misc]


def _cut_off(dim: Ref, samples: Samples) -> Found:
    highest, lowest = max(samples.values()), min(samples.values())
    yield Op("min", (dim, Number(highest))), lambda size: min(size, highest)
    yield Op("max", (dim, Number(lowest))), lambda size: max(size, lowest)


def _divided_quadratic(dim: Ref, samples: Samples) -> Found:
    """The number of pairs, n*(n - 1)//2, and the like: (a*d*d + b*d + c)//k."""
    (low, at_low), (high, at_high) = min(samples.items()), max(samples.items())
    for divisor, square in itertools.product(_QUADRATIC_DIVISORS, _FACTORS):
        if high == low or gcd(square, divisor) == divisor:
            continue
        # What the division loses is below the divisor at both ends, so few factors of d are left.
        rise = divisor * (at_high - at_low) - square * (high * high - low * low)
        for factor in range(-((divisor - rise) // (high - low)), (rise + divisor) // (high - low) + 1):
            numerators = ((square * size * size + factor * size, value) for size, value in samples.items())
            offset = quotient_offset(numerators, divisor)
            if offset is not None:
                yield _quadratic_division(dim, (square, factor, offset), divisor)


def _quadratic_division(dim: Ref, factors: tuple[int, int, int], divisor: int) -> tuple[Expr, Callable[[int], int]]:
    square, factor, offset = factors
    numerator = affine([(square, dim * dim), (factor, dim)], offset)
    return numerator // divisor, lambda size: (square * size * size + factor * size + offset) // divisor


def _squared(dim: Ref, samples: Samples) -> Found:
    """The patches of a square image and a token or two: (d//k)*(d//k) + c."""
    for offset in (0, 1, 2):
        roots = {size: isqrt(max(0, value - offset)) for size, value in samples.items()}
        if any(root * root + offset != samples[size] for size, root in roots.items()):
            continue
        for expr, function in _divided(dim, roots):
            square = affine([(1, expr * expr)], offset)
            yield square, lambda size, root=function, offset=offset: root(size) ** 2 + offset  # type: ignore[misc]


_FORMS = (_affine, _divided, _rounded, _remainder, _cut_off, _quadratic, _divided_quadratic, _squared)


def quotient_offset(pairs: Iterator[tuple[int, int]], divisor: int) -> int | None:
    """The offset c with (numerator + c)//divisor == value for all pairs; the nearest to 0 if there are several."""
    low, high = None, None
    for numerator, value in pairs:
        least, most = divisor * value - numerator, divisor * value + divisor - 1 - numerator
        low = least if low is None else max(low, least)
        high = most if high is None else min(high, most)
        if low > high:
            return None
    if low is None or high is None:
        return None
    return min(max(0, low), high)


def affine(terms: list[tuple[int, Expr]], offset: int) -> Expr:
    """`2*a + b - 3`, written the way that a person would; `32 - t` where only the offset is positive."""
    result: Expr | None = None
    if offset > 0 and all(factor < 0 for factor, _ in terms):
        result, offset = Number(offset), 0
    for factor, term in sorted(terms, key=lambda item: item[0] < 0):
        if factor == 0:
            continue
        size = term if abs(factor) == 1 else abs(factor) * term
        if result is None:
            result = size if factor > 0 else Number(0) - size
        else:
            result = result + size if factor > 0 else result - size
    if result is None:
        return Number(offset)
    return result + offset if offset > 0 else result - (-offset) if offset < 0 else result
