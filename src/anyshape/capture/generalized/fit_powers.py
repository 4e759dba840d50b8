"""Integers that follow the powers that a size has reached: its bits, the power of two above it, its whole logarithm.

Sizes have whole-number arithmetic only: `(n // power + M) // (M + 1)`, with M above all sizes, is 1 where n has reached the
power and 0 below. `min(n // power, 1)` is the same, but torch asks for guards when sizes are made of it.
"""

from __future__ import annotations

import math

import numpy as np

from anyshape.capture.generalized.fit_affine import combine
from anyshape.capture.generalized.samples import Column, Integers, Points
from anyshape.domain import Expr, Number

_MOST_POWERS = 20
_MOST_BITS = 31  # of the size of an axis


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


def _reached(expr: Expr, column: Integers, power: int) -> Column:
    """1 where the size has reached the power, 0 below it."""
    most = 2**_MOST_BITS
    return (expr // power + (most - 1)) // most, (column >= power).astype(np.int64)
