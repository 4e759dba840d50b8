"""Is this array one that the module computed too? By content, whatever its name or its view.

A file has its own names and its own reshapes, so content decides: the same numbers in the same order. What is the same
number throughout says little and must have the same shape as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

import numpy as np

from anyshape.runtime.dtypes import EXTENDED, Array
from anyshape.verify.compare import OutputRule, compare_arrays, is_float
from anyshape.verify.locate.watch import Step
from anyshape.verify.tolerance import Tolerance

_SAMPLES = 8


class KnownValues:
    """The module's values, to be asked for a file's; `tight` where the failure itself is slight."""

    def __init__(self, steps: Sequence[Step], tight: bool = False) -> None:
        self.steps = steps
        self.rule = OutputRule("", Tolerance(noise=0.0) if tight else Tolerance())
        self._by_count: dict[int, list[int]] = defaultdict(list)
        self._sources: list[int] = []  # of each step, all that went into it: bits of an integer
        for position, step in enumerate(steps):
            self._by_count[step.value.size].append(position)
            self._sources.append(union(self._sources[taken] | 1 << taken for taken in step.takes))

    def find(self, value: Array, is_data: bool = False) -> int | None:
        """The first step that has the same content; None if no step has. Data is never found among weights."""
        return next((step for step in self.find_all(value) if self.steps[step].is_data or not is_data), None)

    def follows(self, step: int, among: int) -> bool:
        """Whether a step is one of these, or one of these went into it."""
        return bool((self._sources[step] | 1 << step) & among)

    def find_all(self, value: Array) -> Iterator[int]:
        """Every step that has the same content, in order."""
        if value.dtype.kind in "OUS":
            return
        for position in self._by_count.get(value.size, ()):
            if self.is_same(self.steps[position].value, value):
                yield position

    def is_same(self, known: Array, value: Array) -> bool:
        if known.dtype.kind == "c" or value.dtype.kind == "c":
            return False
        if known.shape != value.shape and (value.size <= 1 or is_one_number(value)):
            return False
        with np.errstate(all="ignore"):  # a module may well compute NaN on its way
            return _may_be_same(known, value) and self._is_equal(known.reshape(-1), value.reshape(-1))

    def _is_equal(self, one: Array, other: Array) -> bool:
        if is_float(one) and is_float(other):
            finer, coarser = (one, other) if _width(one) >= _width(other) else (other, one)
            return compare_arrays(coarser, finer.astype(coarser.dtype), self.rule)[0] is None
        return bool(np.array_equal(one.astype(np.float64), other.astype(np.float64)))


def union(sets: Iterable[int]) -> int:
    """Of sets of steps, each held as the bits of an integer."""
    return reduce(or_, sets, 0)


def _may_be_same(one: Array, other: Array) -> bool:
    """A glance at a few elements: nearly all candidates end here."""
    places = np.linspace(0, max(one.size - 1, 0), _SAMPLES).astype(int) if one.size else np.zeros(0, int)
    left, right = one.flat[places].astype(np.float64), other.flat[places].astype(np.float64)
    scale = np.abs(np.where(np.isfinite(left), left, 0.0)).max(initial=1.0)
    return bool(np.allclose(left, right, rtol=1e-2, atol=1e-2 * scale, equal_nan=True))


def is_one_number(value: Array) -> bool:
    """Whether all elements are the same."""
    return value.size > 0 and bool((value == value.reshape(-1)[0]).all())


def _width(array: Array) -> int:
    return 1 if array.dtype.name in EXTENDED else array.dtype.itemsize
