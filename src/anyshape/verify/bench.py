"""One trial: the same inputs to the module and to the file, and a judgement of what each answers.

The file runs in the child while the module runs here. A difference in values stands only if these very inputs do not
make the module itself stray that far, and, when it is slight, if other inputs show it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyshape.records.verdict import Difference, Failure, FailureKind, Mismatch, Sizes
from anyshape.runtime.client import ChildRunner, Pending
from anyshape.runtime.dtypes import Array
from anyshape.runtime.errors import ChildDied, Death, RunError, RuntimeRejected
from anyshape.verify.compare import Comparison, OutputRule, compare_in_full
from anyshape.verify.graph import chooses_among_values
from anyshape.verify.noise import NoiseFloor, Yardstick
from anyshape.verify.reference import Answer, CallInputs, Refused
from anyshape.verify.request import VerifyRequest
from anyshape.verify.tensors import count_elements
from anyshape.verify.tolerance import Tolerance
from anyshape.verify.values import RANDOM, EdgeValues, is_finite, is_usable, with_values

_SLOWER_THAN_EAGER = 30.0
_SLIGHT = 100.0
_REPEATS = 3
_DEATHS = {
    Death.CRASHED: FailureKind.CRASHED,
    Death.TIMED_OUT: FailureKind.TIMED_OUT,
    Death.OUT_OF_MEMORY: FailureKind.OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class Trial:
    """Sizes, values and seed: what makes a trial repeatable. `edge` None: random values."""

    sizes: Sizes
    seed: int
    edge: EdgeValues | None = None

    @property
    def values(self) -> str:
        return RANDOM if self.edge is None else self.edge.name


@dataclass(frozen=True)
class Equal:
    """The answers agree; per output the worst error in tolerances, and how many floors a tolerance is."""

    excess: tuple[float, ...]
    allowed: tuple[float, ...]


@dataclass(frozen=True)
class SetAside:
    """The trial says nothing about the file, and why."""

    why: str


Outcome = Equal | Failure | Refused | SetAside


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything that a trial needs; `floor` and `yardstick` are None when the user gave the tolerance."""

    request: VerifyRequest
    path: str
    runner: ChildRunner
    yardstick: Yardstick | None
    floor: NoiseFloor

    def run(self, trial: Trial) -> Outcome:
        """Whether module and file agree; a slight difference in values must show on other inputs as well."""
        outcome = self._run_once(trial)
        if not _is_slight(outcome):
            return outcome
        for repeat in range(1, _REPEATS + 1):
            again = self._run_once(replace(trial, seed=trial.seed + 7919 * repeat))
            if isinstance(again, Failure):
                return outcome
        return SetAside("a slight difference did not repeat")

    def _run_once(self, trial: Trial) -> Outcome:
        ordinary = self.request.make(trial.sizes, trial.seed)
        inputs = with_values(ordinary, trial.edge)
        pending = self.runner.submit(self.request.feeds(inputs))
        try:
            answer = self.request.reference.run(inputs)
            if isinstance(answer, Refused):
                return answer
            if trial.edge is not None and not self._is_usable(answer, ordinary):
                return SetAside("the module answers without finite numbers")
            return self._judge(trial, inputs, answer, pending)
        finally:
            pending.discard()

    def _is_usable(self, answer: Answer, ordinary: CallInputs) -> bool:
        if is_finite(answer):
            return True
        usual = self.request.reference.run(ordinary)
        return isinstance(usual, Answer) and is_usable(answer, usual)

    def _judge(self, trial: Trial, inputs: CallInputs, answer: Answer, pending: Pending) -> Outcome:
        limit = max(self.request.options.time_limit_s, _SLOWER_THAN_EAGER * answer.seconds)
        try:
            actual = pending.result(limit)
        except RunError as error:
            return _failure(trial, _kind(error), message=str(error))
        rules = self._rules(answer, inputs)
        found = compare_in_full(answer.arrays, actual, rules)
        if found.difference is not None and found.difference.mismatch is Mismatch.VALUE:
            found = self._beyond_noise(inputs, answer, actual, rules, found)
        if found.difference is None:
            return Equal(found.excess, tuple(rule.tolerance.allowed for rule in rules))
        if self._is_tie(trial, found.difference):
            return SetAside("equal values among which the choice is free")
        return _failure(trial, FailureKind.DIFFERS, found.difference)

    def _rules(self, answer: Answer, inputs: CallInputs) -> tuple[OutputRule, ...]:
        options = self.request.options
        names = _names(self.request.output_names, answer)
        if self.yardstick is not None:
            return self.floor.rules(names, answer, count_elements(inputs))
        tolerance = Tolerance(rtol=options.rtol, atol=options.atol)
        return tuple(OutputRule(name, tolerance, free) for name, free in zip(names, answer.python_floats, strict=True))

    def _beyond_noise(
        self, inputs: CallInputs, answer: Answer, actual: list[Array], rules: tuple[OutputRule, ...], found: Comparison
    ) -> Comparison:
        if self.yardstick is None:
            return found
        strays = self.yardstick.stray(inputs, answer, self.request.options.seed)
        return compare_in_full(answer.arrays, actual, rules, strays)

    def _is_tie(self, trial: Trial, difference: Difference) -> bool:
        makes_ties = trial.edge is not None and trial.edge.ties
        return makes_ties and difference.mismatch is Mismatch.VALUE and chooses_among_values(self.path)


def _names(names: Sequence[str], answer: Answer) -> tuple[str, ...]:
    """The file's names, or the module's own paths where the numbers of outputs differ anyway."""
    given = tuple(names)
    return given if len(given) == len(answer.arrays) else answer.paths


def _failure(trial: Trial, kind: FailureKind, difference: Difference | None = None, message: str = "") -> Failure:
    return Failure(
        sizes=dict(trial.sizes),
        kind=kind,
        difference=difference,
        message=message,
        values=trial.values,
        seed=trial.seed,
    )


def _kind(error: RunError) -> FailureKind:
    if isinstance(error, ChildDied):
        return _DEATHS[error.death]
    if isinstance(error, RuntimeRejected):
        return FailureKind.UNSUPPORTED if error.unsupported else FailureKind.REJECTED
    return FailureKind.RAISED


def _is_slight(outcome: Outcome) -> bool:
    difference = outcome.difference if isinstance(outcome, Failure) else None
    return difference is not None and difference.mismatch is Mismatch.VALUE and difference.excess < _SLIGHT
