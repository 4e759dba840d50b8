"""Integers that follow the powers that a size has reached: its bits, the power of two above it, its whole logarithm.

Sizes have whole-number arithmetic only: `min(n // power, 1)` is 1 where a size has reached a power.
"""

from __future__ import annotations

import math

import numpy as np

from anyshape.capture.generalized.fit_affine import combine
from anyshape.capture.generalized.samples import Column, Integers, Points
from anyshape.domain import Expr, Number, Op

_MOST_POWERS = 20
_MOST_BITS = 31  # of the size of an axis


def fit_bits(values: Integers, points: Points) -> Expr | None:
    """How often a size can be halved, and the power of two below or above it: the sum of min(n // 2**k, 1) counts the bits
    of n, and that of 2**k times each is one less than the power of two above it."""
    for expr, column in points.names:
        for below in (1, 0):
            if (column < below).any():
                continue
            steps = [((expr - below) // 2**power, (column - below) // 2**power) for power in range(_MOST_BITS)]
            reached = [(Op("min", (step, Number(1))), np.minimum(numbers, 1)) for step, numbers in steps]
            for weight in (1, 2):
                total: Column = (Number(0), np.zeros_like(column))
                for power, (step, numbers) in enumerate(reached):
                    total = total[0] + step * weight**power, total[1] + numbers * weight**power
                found = combine(values, (total,))
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
                count = count[0] + Op("min", (expr // power, Number(1))), count[1] + (column >= power)
            found = combine(values, (count,))
            if found is not None:
                return found
    return None
