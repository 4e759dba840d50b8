"""Lower failing sizes as long as they still fail.

Dims are lowered one by one, then all together, always inside the domain, until nothing gets smaller or the tries are
spent. Every result was seen to fail; none is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

from anyshape.domain import Sizes

_SMALLEST = 4
_LOOKED_AT = 4096


class Contains(Protocol):
    """A domain, as far as shrinking is concerned."""

    def contains(self, sizes: Mapping[str, int]) -> bool: ...


@dataclass(frozen=True)
class Budget:
    """At most so many sizes are tried, and only while `has_time`."""

    tries: int = 40
    has_time: Callable[[], bool] = lambda: True


class _OutOfBudgetError(Exception):
    """Ends the search from wherever it is."""


class _Search:
    """Asks `fails` about each sizes at most once, and keeps the smallest that did."""

    def __init__(self, sizes: Sizes, fails: Callable[[Sizes], bool], domain: Contains, budget: Budget) -> None:
        self.smallest = dict(sizes)
        self._fails = fails
        self._domain = domain
        self._budget = budget
        self._tried = {tuple(sizes.items())}

    def candidates(self, names: Sequence[str]) -> Iterator[Sizes]:
        """Changes that lower these dims by the same amount and stay inside the domain, the lowest first."""
        most = min(self.smallest[name] for name in names)
        steps = range(most, 0, -max(1, most // _LOOKED_AT))
        lowered = ({name: self.smallest[name] - step for name in names} for step in steps)
        yield from _telling([changed for changed in lowered if self._domain.contains({**self.smallest, **changed})])

    def lower(self, changed: Sizes) -> bool:
        """Whether the sizes with these changes are in the domain and fail as well; they are then the smallest."""
        candidate = {**self.smallest, **changed}
        key = tuple(candidate.items())
        grows = any(candidate[name] > self.smallest[name] for name in candidate)
        if key in self._tried or grows or not self._domain.contains(candidate):
            return False
        if len(self._tried) > self._budget.tries or not self._budget.has_time():
            raise _OutOfBudgetError
        self._tried.add(key)
        if not self._fails(candidate):
            return False
        self.smallest = candidate
        return True


def shrink(sizes: Sizes, fails: Callable[[Sizes], bool], domain: Contains, budget: Budget = Budget()) -> dict[str, int]:  # noqa: B008 - frozen
    """The smallest sizes found at which `fails` is true; `sizes` themselves must fail."""
    search = _Search(sizes, fails, domain, budget)
    try:
        while _shrink_each(search) or _shrink_together(search):
            pass
    except _OutOfBudgetError:
        pass
    return search.smallest


def _shrink_each(search: _Search) -> bool:
    """Lower dims on their own, the largest first; True if one got smaller."""
    lowered = False
    for name in sorted(search.smallest, key=lambda name: -search.smallest[name]):
        for changed in search.candidates((name,)):
            if search.lower(changed):
                lowered = True
                break
    return lowered


def _shrink_together(search: _Search) -> bool:
    """Lower all dims to the same size, then two at once by the same step: a relation may allow nothing else."""
    names = tuple(search.smallest)
    for size in (0, 1, 2, 3):
        if size < max(search.smallest.values(), default=0) and search.lower(dict.fromkeys(names, size)):
            return True
    return any(search.lower(changed) for pair in combinations(names, 2) for changed in search.candidates(pair))


def _telling(candidates: Sequence[Sizes]) -> Iterator[Sizes]:
    """The few smallest, then ever nearer to the largest: enough to walk down by halves."""
    yield from candidates[:_SMALLEST]
    step = len(candidates) // 2
    while step >= 1:
        if len(candidates) - step >= _SMALLEST:
            yield candidates[len(candidates) - step]
        step //= 2
