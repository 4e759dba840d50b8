"""How far two right answers may lie apart: a multiple of the noise that the module's own precision makes.

    tolerance = FACTOR * noise * magnitude

`noise` is measured (see `noise.py`) relative to the magnitude, but never below a few ulps: the noise of one draw can be
0, and a file may come to the same result by another formula. The magnitude of an element is the largest among its
peers, elements without a wide gap between them: so a mask filled with -1e9 does not blur the scores beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyshape.runtime.dtypes import Array

FACTOR = 8.0
_GAP_BITS = 10
_LEAST_NOISE_IN_ULPS = 16.0
_LEAST_NOISE_IN_ULPS_OF_HALF = 0.5
_NOISE_IN_ULPS = 64.0  # where nothing could be measured: single and double precision
_NOISE_IN_ULPS_OF_HALF = 2.0
_MOST_NOISE_IN_ULPS = 1024.0  # a value that flips (a rounded one, a chosen one) is no noise of its neighbours
_MOST_NOISE_IN_ULPS_OF_HALF = 16.0
_DOUBLE_PRECISION = 1e-10  # an epsilon below this
_LEAST_NOISE_OF_DOUBLES = 2.0**-40  # far from their own rounding, which nobody measures, and from that of singles
_HALF_PRECISION = 1e-4  # an epsilon above this is that of half, bfloat16 or narrower


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of one output. `noise` None: not measured, so taken from the dtype. rtol/atol: the user's word."""

    noise: float | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def is_users(self) -> bool:
        """Whether the user's own rtol or atol stands in place of the noise floor."""
        return self.rtol is not None or self.atol is not None

    @property
    def allowed(self) -> float:
        """How many floors the tolerance is wide."""
        return 1.0 if self.is_users else FACTOR

    def limit(self, expected: Array, eps: float) -> Array:
        """The largest error of each element that counts as equal; `eps` is that of the precision before widening."""
        if self.is_users:
            return np.asarray((self.atol or 0.0) + (self.rtol or 0.0) * np.abs(expected))
        noise = default_noise(eps) if self.noise is None else min(max(self.noise, least_noise(eps)), most_noise(eps))
        return FACTOR * noise * magnitudes(expected)


DEFAULT_TOLERANCE = Tolerance()


def default_noise(eps: float) -> float:
    """The noise to assume of a dtype with this epsilon, relative to the magnitude."""
    return max(least_noise(eps), eps * (_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _NOISE_IN_ULPS))


def least_noise(eps: float) -> float:
    """The least noise to assume, whatever was measured."""
    if eps < _DOUBLE_PRECISION:
        return _LEAST_NOISE_OF_DOUBLES
    return eps * (_LEAST_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _LEAST_NOISE_IN_ULPS)


def most_noise(eps: float) -> float:
    """The most noise to grant a whole output; what strays further is judged element by element."""
    return max(least_noise(eps), eps * (_MOST_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _MOST_NOISE_IN_ULPS))


def magnitudes(array: Array) -> Array:
    """For each element the largest magnitude among its peers.

    Peers are neighbours in the order of magnitudes with less than a factor of 2**10 between each two. The smallest ones
    (and zeros: a zero may be what is left of a cancellation) count as 1 if there are others of 1 or more: how small the
    tail of a saturated sigmoid is, is a matter of the formula. Elements that are not finite get 0.
    """
    size = np.abs(array)
    usable = np.isfinite(size) & (size > 0)
    if not usable.any():
        return np.isfinite(size).astype(np.float64)  # nothing but zeros tells no magnitude: that of the unit is assumed
    exponents = np.frexp(np.where(usable, size, 1.0))[1]
    present = np.unique(exponents[usable])
    group_of = np.concatenate(
        [[0], np.cumsum(np.diff(present) > _GAP_BITS)]
    )  # exponents ascend: a wide step parts them
    groups = group_of[np.searchsorted(present, np.where(usable, exponents, present[0]))]
    largest = np.zeros(group_of[-1] + 1)
    np.maximum.at(largest, groups[usable], size[usable])
    unit = min(1.0, float(largest[-1]))
    return np.where(np.isfinite(size), np.maximum(largest[groups], unit), 0.0)
