"""Verify a file against its module: run the plan, count honestly, make the failure small.

Nothing that was not compared is called right: what the budget left out, the module refused or the values made
meaningless stands in the verdict as just that.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from os import fspath
from pathlib import Path
from time import monotonic

from anyshape.records.verdict import Failure, FailureKind, OutputError, Refusal, Sizes, Untried, Verdict
from anyshape.runtime.client import ChildRunner
from anyshape.verify.bench import Bench, Equal, Outcome, SetAside, Trial
from anyshape.verify.noise import MEASURED_SIZES, NoiseFloor, Yardstick
from anyshape.verify.plan import plan_trials, spread
from anyshape.verify.reference import Refused
from anyshape.verify.request import VerifyRequest
from anyshape.verify.shrink import Budget, shrink
from anyshape.verify.state import RandomState
from anyshape.verify.values import edge_called

_HOPELESS = (FailureKind.REJECTED, FailureKind.UNSUPPORTED)
_SHRINK_SHARE = 0.5  # of the budget, on top of it: a small failure is worth waiting for
_SIMPLE_VALUES = ("zeros", "repeated")


def verify(request: VerifyRequest) -> Verdict:
    """Compare the file with the module at the given sizes, and shrink the failure if there is one."""
    random = RandomState()
    try:
        with _file(request) as path, _runner(request, path) as runner:
            return _verify(request, path, runner)
    finally:
        random.restore()


def _verify(request: VerifyRequest, path: str, runner: ChildRunner) -> Verdict:
    started = monotonic()
    options = request.options
    yardstick = Yardstick(request.reference) if options.rtol is None and options.atol is None else None
    floor = _measure(request, yardstick)
    bench = Bench(request, path, runner, yardstick, floor)
    tally = _Tally(request)
    trials = plan_trials(request)
    for done, trial in enumerate(trials):
        if tally.trials and monotonic() - started > options.budget_s:
            tally.give_up(trial.sizes, f"the budget of {options.budget_s:g} s was spent")
            continue
        if options.progress is not None:
            options.progress(done, len(trials), trial.sizes)
        if not tally.is_settled(trial):
            tally.add(trial, bench.run(trial))
        if tally.is_hopeless or (tally.failures and options.stop_at_failure):
            break
    smallest = _smallest_failure(bench, tally.failures, started)
    return tally.verdict(smallest, floor.how if yardstick is not None else "the user's", monotonic() - started)


def _measure(request: VerifyRequest, yardstick: Yardstick | None) -> NoiseFloor:
    if yardstick is None:
        return NoiseFloor()
    sizes = spread(request.sizes, MEASURED_SIZES)
    return yardstick.measure([request.make(each, request.options.seed) for each in sizes])


class _Tally:
    """What the trials have shown so far."""

    def __init__(self, request: VerifyRequest) -> None:
        self._request = request
        self._tried: set[tuple[tuple[str, int], ...]] = set()
        self._untried: dict[tuple[tuple[str, int], ...], Untried] = {}
        self._refused: dict[tuple[tuple[str, int], ...], Refusal] = {}
        self._worst: list[OutputError] = []
        self._set_aside: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.trials = 0

    def is_settled(self, trial: Trial) -> bool:
        """Whether another trial at these sizes can add nothing: the module refused them, or the file failed there."""
        failed = any(dict(failure.sizes) == dict(trial.sizes) for failure in self.failures)
        return failed or _key(trial.sizes) in self._refused

    @property
    def is_hopeless(self) -> bool:
        return any(failure.kind in _HOPELESS for failure in self.failures)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        self.trials += 1
        key = _key(trial.sizes)
        if isinstance(outcome, (Equal, Failure)):
            self._tried.add(key)
        if isinstance(outcome, Failure):
            self.failures.append(outcome)
        elif isinstance(outcome, Equal):
            self._note_errors(outcome)
        elif isinstance(outcome, SetAside):
            self._set_aside[f"{trial.values}: {outcome.why}"] += 1
        elif trial.edge is not None:
            self._set_aside[f"{trial.values}: the module refuses them"] += 1
        elif outcome.memory:
            self.give_up(trial.sizes, "the module ran out of memory")
        else:
            self._refused[key] = Refusal(dict(trial.sizes), outcome.message, outcome.source)

    def give_up(self, sizes: Sizes, why: str) -> None:
        self._untried.setdefault(_key(sizes), Untried(dict(sizes), why))

    def _note_errors(self, outcome: Equal) -> None:
        names = self._request.output_names
        found = [
            OutputError(name, excess * allowed, allowed)
            for name, excess, allowed in zip(names, outcome.excess, outcome.allowed, strict=False)
        ]
        if not self._worst:
            self._worst = found
        else:
            self._worst = [
                max(one, two, key=lambda error: error.worst) for one, two in zip(self._worst, found, strict=False)
            ]

    def verdict(self, smallest: Failure | None, floor: str, seconds: float) -> Verdict:
        left = [
            untried for key, untried in self._untried.items() if key not in self._tried and key not in self._refused
        ]
        return Verdict(
            tried=tuple(dict(sizes) for sizes in self._request.sizes if _key(sizes) in self._tried),
            failures=tuple(self.failures),
            smallest_failure=smallest,
            refused=tuple(self._refused.values()),
            untried=tuple(left),
            outputs=tuple(self._worst),
            trials=self.trials,
            set_aside=dict(self._set_aside),
            floor=floor,
            seconds=seconds,
        )


def _key(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def _smallest_failure(bench: Bench, failures: list[Failure], started: float) -> Failure | None:
    """The failure at the smallest sizes at which it shows, and there with the simplest values."""
    if not failures:
        return None
    smallest = min(failures, key=lambda failure: prod(size + 1 for size in failure.sizes.values()))
    if smallest.kind in _HOPELESS:
        return smallest
    options = bench.request.options
    deadline = max(monotonic(), started + options.budget_s) + _SHRINK_SHARE * options.budget_s
    budget = Budget(options.shrink_tries, lambda: monotonic() < deadline)

    def fails(sizes: Sizes) -> bool:
        nonlocal smallest
        found = _fails_alike(bench, smallest, sizes)
        smallest = found or smallest
        return found is not None

    shrink(smallest.sizes, fails, bench.request.domain, budget)
    return _with_simple_values(bench, smallest) if budget.has_time() else smallest


def _fails_alike(bench: Bench, failure: Failure, sizes: Sizes) -> Failure | None:
    """The same kind of failure at other sizes, with the same values or with those of two other seeds."""
    for seed in (failure.seed, failure.seed + 1, failure.seed + 2):
        outcome = bench.run(Trial(sizes, seed, edge_called(failure.values)))
        if isinstance(outcome, Failure) and outcome.kind is failure.kind:
            return outcome
        if isinstance(outcome, Refused):
            return None
    return None


def _with_simple_values(bench: Bench, failure: Failure) -> Failure:
    for name in _SIMPLE_VALUES:
        outcome = bench.run(Trial(failure.sizes, failure.seed, edge_called(name)))
        if isinstance(outcome, Failure) and outcome.kind is failure.kind:
            return outcome
    return failure


@contextmanager
def _file(request: VerifyRequest) -> Iterator[str]:
    if not isinstance(request.model, bytes):
        yield fspath(request.model)
        return
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(request.model)
        yield str(path)


def _runner(request: VerifyRequest, path: str) -> ChildRunner:
    options = request.options
    return ChildRunner(
        path, threads=options.threads, time_limit_s=options.time_limit_s, memory_limit=options.memory_limit
    )
