"""Lower failing sizes as long as they still fail, then try simpler values: the smallest failure.

Dims are lowered one by one, then all together, always inside the domain, until nothing gets smaller or the tries are
spent. Every result was seen to fail; none is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from anyshape.domain import Sizes
from anyshape.processes.idleness import Work
from anyshape.records.verdict import Failure
from anyshape.verify.edge_values import edge_called
from anyshape.verify.request import Contains
from anyshape.verify.tally import HOPELESS
from anyshape.verify.trial_runner import Trial, TrialRunner, Unanswered, is_of_values

_SMALLEST = 4
_LOOKED_AT = 4096
_SHRINK_SHARE = 0.5  # of the budget, on top of it: a small failure is worth waiting for
_SIMPLE_VALUES = ("zeros", "repeated")


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


def smallest_failure(trial_runner: TrialRunner, failures: list[Failure], work: Work) -> Failure | None:
    """The failure at the smallest sizes at which it shows, and there with the simplest values.

    `work` began with the comparisons.
    """
    if not failures:
        return None
    smallest = min(failures, key=lambda failure: prod(size + 1 for size in failure.sizes.values()))
    if smallest.kind in HOPELESS:
        return smallest
    options = trial_runner.request.options
    most = max(work.seconds, options.budget_s) + _SHRINK_SHARE * options.budget_s
    budget = Budget(options.shrink_tries, lambda: work.seconds < most)

    def fails(sizes: Sizes) -> bool:
        nonlocal smallest
        found = _fails_alike(trial_runner, smallest, sizes)
        smallest = found or smallest
        return found is not None

    shrink(smallest.sizes, fails, trial_runner.request.domain, budget)
    return _with_simple_values(trial_runner, smallest) if budget.has_time() else smallest


def _fails_alike(trial_runner: TrialRunner, failure: Failure, sizes: Sizes) -> Failure | None:
    """A failure of the same kind at other sizes, with the same values or with those of two other seeds."""
    for seed in (failure.seed, failure.seed + 1, failure.seed + 2):
        outcome = trial_runner.run(Trial(sizes, seed, edge_called(failure.values)))
        if isinstance(outcome, Failure) and outcome.kind is failure.kind:
            return outcome
        if isinstance(outcome, Unanswered):
            return None
    return None


def _with_simple_values(trial_runner: TrialRunner, failure: Failure) -> Failure:
    """The failure at simpler values, if these change anything: integers stay as they are."""
    for name in _SIMPLE_VALUES:
        outcome = trial_runner.run(Trial(failure.sizes, failure.seed, edge_called(name)))
        if isinstance(outcome, Failure) and outcome.kind is failure.kind:
            is_same = is_of_values(failure.difference) and outcome.difference == failure.difference
            return failure if is_same else outcome
    return failure
