"""Run one trial: give the same inputs to the module and to the file, and compare their outputs.

The file runs in the child while the module runs here. A difference in values stands only if these very inputs do not
change the module's own answer that much, and, when it is slight, if other inputs show it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from anyshape.domain import Sizes
from anyshape.records.verdict import Difference, Failure, FailureKind, Mismatch
from anyshape.runtime import ChildRunner, Pending
from anyshape.runtime.child_messages import Array, ChildDied, Death, RunError
from anyshape.verify.compare import OutputTolerance, compare_in_full, finite_in_both, kind_of, without_numbers_apart
from anyshape.verify.edge_values import RANDOM, EdgeValues, is_finite, is_usable, with_values
from anyshape.verify.float64_copy import SLIGHT, Float64Copy, rounding_of_file
from anyshape.verify.near_ties import find_sensitivities
from anyshape.verify.noise import NoiseFloor, Yardstick, noise_of_ordinary
from anyshape.verify.reference import Answer, CallInputs, Refused
from anyshape.verify.request import VerifyRequest, chooses_among_values
from anyshape.verify.tensors import total_elements
from anyshape.verify.ties import other_orders
from anyshape.verify.tolerance import Tolerance, computes_in_double

_SLOWER_THAN_EAGER = 30.0
_REPEATS = 3
FREE_ORDER = "torch leaves the order of equal values open"
_PATIENCE_S = 2.0  # of the child's work, so that it does not matter what else the machine does


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
    """The answers agree; per output the worst error in tolerances, and how many floors a tolerance is.

    `rounded` has the errors in tolerances where some are above 1 and only the rounding of the file (see `float64_copy`).
    """

    excess: tuple[float, ...]
    allowed: tuple[float, ...]
    rounded: tuple[float, ...] = ()


@dataclass(frozen=True)
class SetAside:
    """The trial is no evidence about the file, and why."""

    why: str


@dataclass(frozen=True)
class Unanswered:
    """The module refused; whether the file answered all the same, or None if it was not waited for."""

    refused: Refused
    file_answers: bool | None


@dataclass(frozen=True, eq=False)
class _Given:
    """Inputs before and after their values were changed, and the module's answer to the latter."""

    ordinary: CallInputs
    inputs: CallInputs
    answer: Answer


@dataclass(frozen=True, eq=False)
class Started:
    """A trial whose run of the file is under way."""

    ordinary: CallInputs
    inputs: CallInputs
    pending: Pending
    runner: ChildRunner


Read = Callable[[Sequence[Array]], list[Array]]
Outcome = Equal | Failure | Unanswered | SetAside


@dataclass(frozen=True, eq=False)
class TrialRunner:
    """Everything that a trial needs; `yardstick` is None when the user gave the tolerance.

    `read` makes what the runtime gave into what the file itself would give, where that is not the same. `float64_copy` is
    the file in double precision.
    """

    request: VerifyRequest
    path: str
    runner: ChildRunner
    yardstick: Yardstick | None
    floor: NoiseFloor
    read: Read = list
    float64_copy: Float64Copy | None = None

    def start(self, trial: Trial, runner: ChildRunner, *, with_module: bool = False) -> Started:
        """Let a child run the file for this trial meanwhile, and a worker the module; to be given to `run`, or discarded."""
        ordinary = self.request.make(trial.sizes, trial.seed)
        inputs = with_values(ordinary, trial.edge, self.request.legal(trial.sizes))
        if with_module:
            self.request.reference.begin(inputs)
        return Started(ordinary, inputs, runner.submit(self.request.feeds(inputs)), runner)

    def discard(self, started: Started) -> None:
        """End what goes on for a trial."""
        started.pending.discard()
        self.request.reference.drop(started.inputs)

    def run(self, trial: Trial, started: Started | None = None) -> Outcome:
        """Whether module and file agree; a slight difference in values must show on other inputs as well."""
        started = started or self.start(trial, self.runner)
        outcome = self._run_once(trial, started)
        if not _is_slight(outcome):
            return outcome
        for repeat in range(1, _REPEATS + 1):
            other = replace(trial, seed=trial.seed + 7919 * repeat)
            again = self._run_once(other, self.start(other, started.runner))
            if isinstance(again, Failure):
                return outcome
        return SetAside("a slight difference did not repeat")

    def _run_once(self, trial: Trial, started: Started) -> Outcome:
        ordinary, inputs, pending = started.ordinary, started.inputs, started.pending
        try:
            answer = self.request.reference.recall(inputs)
            if isinstance(answer, Refused):
                return Unanswered(answer, _is_answered(pending))
            is_extreme = trial.edge is not None and trial.edge.extreme
            judge = self._judge_finite if is_extreme and not self._is_usable(answer, ordinary) else self._judge
            actual = self.read(pending.result(self._limit(answer)))
        except RunError as error:
            return _failure(trial, kind_of(error), message=str(error))
        finally:
            self.discard(started)
        return judge(trial, _Given(ordinary, inputs, answer), actual)

    def _is_usable(self, answer: Answer, ordinary: CallInputs) -> bool:
        if is_finite(answer):
            return True
        usual = self.request.reference.recall(ordinary)
        return isinstance(usual, Answer) and is_usable(answer, usual)

    def _judge_finite(self, trial: Trial, given: _Given, actual: list[Array]) -> Outcome:
        """A failure if numbers differ that are finite on both sides; otherwise the trial is set aside."""
        expected, actual = finite_in_both(given.answer.arrays, actual)
        outcome = self._judge(trial, replace(given, answer=replace(given.answer, arrays=expected)), actual)
        # Other orders of equal values (see `_why_no_evidence`) have finite numbers at other places.
        if isinstance(outcome, Failure) and not self._has_choices:
            return outcome
        return SetAside("the module answers without finite numbers")

    def _judge(self, trial: Trial, given: _Given, actual: list[Array]) -> Outcome:
        tolerances = self._tolerances(given.answer, given.inputs)
        expected = given.answer.arrays
        found = compare_in_full(expected, actual, tolerances)
        sensitivities: Sequence[Array] = [np.zeros(array.shape) for array in expected]
        if is_of_values(found.difference):
            for sensitivities in self._sensitivities(trial, given, actual):
                if not any(map(np.any, sensitivities)):  # nothing else is allowed than before
                    continue
                found = compare_in_full(expected, actual, tolerances, sensitivities)
                if found.difference is None:  # more answers of the module would only allow more
                    break
        rounded: tuple[float, ...] = ()
        if is_of_values(found.difference) and max(found.excess) < SLIGHT:
            rounded = found.excess
            sensitivities = self._with_rounding(given, actual, tolerances, sensitivities)
            found = compare_in_full(expected, actual, tolerances, sensitivities)
        if found.difference is None:
            return Equal(found.excess, tuple(each.tolerance.allowed for each in tolerances), rounded)
        if why := self._why_no_evidence(trial, given, actual, found.difference):
            return SetAside(why)
        return _failure(trial, FailureKind.DIFFERS, found.difference)

    def _why_no_evidence(self, trial: Trial, given: _Given, actual: list[Array], difference: Difference) -> str:
        """Why the module itself leaves open what differs; empty where it does not."""
        if is_of_values(difference) and self._has_choices:
            tolerances = self._tolerances(given.answer, given.inputs)
            for other in other_orders(self.request.reference, given.inputs):
                if compare_in_full(other.arrays, actual, tolerances).difference is None:
                    return FREE_ORDER
        is_of_numbers = difference.mismatch in (Mismatch.NAN, Mismatch.INFINITY)
        if trial.edge is None or not is_of_numbers or self.yardstick is None:
            return ""
        tolerances = self._tolerances(given.answer, given.inputs)
        both = [without_numbers_apart(*each) for each in zip(given.answer.arrays, actual, strict=True)]
        if compare_in_full([one for one, _ in both], [other for _, other in both], tolerances).difference is None:
            return "neither the module nor the file answers with finite numbers"
        is_unsure = self.yardstick.loses_numbers(given.inputs, given.answer, self.request.options.seed)
        return "whether the module answers with finite numbers is a matter of rounding" if is_unsure else ""

    def _tolerances(self, answer: Answer, inputs: CallInputs) -> tuple[OutputTolerance, ...]:
        options = self.request.options
        names = _names(self.request.output_names, answer)
        if self.yardstick is not None:
            return self.floor.tolerances(names, answer, total_elements(inputs))
        tolerance = Tolerance(rtol=options.rtol, atol=options.atol)
        return tuple(
            OutputTolerance(name, tolerance, free) for name, free in zip(names, answer.python_floats, strict=True)
        )

    def _sensitivities(self, trial: Trial, given: _Given, actual: list[Array]) -> Iterator[Sequence[Array]]:
        """The module's own sensitivity on these inputs, larger with each answer of the module."""
        if not self._has_choices:
            return self._noise(trial, given, keeps_ties=False)
        answers = (given.answer.arrays, actual)
        noise = partial(self._noise, trial, given)
        return find_sensitivities(self.request.reference, given.inputs, answers, self.yardstick, noise)

    @cached_property
    def _has_choices(self) -> bool:
        return chooses_among_values(self.path)

    def _noise(self, trial: Trial, given: _Given, keeps_ties: bool) -> Iterator[Sequence[Array]]:
        """By rounding; for edge values, no less than noise of an ordinary answer.

        Large values drive a gate to 1e-8, and how near to 0 that is, no ordinary answer depends on.
        """
        if self.yardstick is None:
            yield [np.zeros(array.shape) for array in given.answer.arrays]
            return
        ordinary = None if trial.edge is None else given.ordinary
        seed, roundings = self.request.options.seed, self.floor.roundings
        # Equal elements that were made on purpose stay equal: a comparison of inputs with one another is exact.
        keeps_ties = keeps_ties or (trial.edge is not None and not trial.edge.extreme)
        usual = None if trial.edge is None else self.request.reference.recall(given.ordinary)
        found = self.yardstick.sensitivities(given.inputs, given.answer, seed, ordinary, roundings, keeps_ties)
        for sensitivities in found:
            yield noise_of_ordinary(usual, sensitivities) if isinstance(usual, Answer) else sensitivities

    def _with_rounding(
        self, given: _Given, actual: list[Array], tolerances: Sequence[OutputTolerance], sensitivities: Sequence[Array]
    ) -> Sequence[Array]:
        """The sensitivities, raised to what the file's own rounding makes."""
        copy = self.float64_copy
        if self.yardstick is None or copy is None or computes_in_double(self.request.reference, given.inputs):
            return sensitivities
        exact = self.yardstick.recall_double(given.inputs)
        if exact is None:
            return sensitivities
        doubles = copy.run(self.request.feeds(given.inputs), self._limit(given.answer))
        if doubles is None or not len(exact.arrays) == len(doubles) == len(actual):
            return sensitivities
        rounding = rounding_of_file(given.answer.arrays, actual, (exact.arrays, doubles), tolerances)
        return [np.maximum(one, other) for one, other in zip(sensitivities, rounding, strict=True)]

    def _limit(self, answer: Answer) -> float:
        return max(self.request.options.run_limit_s, _SLOWER_THAN_EAGER * answer.seconds)


def _is_answered(pending: Pending) -> bool | None:
    try:
        pending.result(_PATIENCE_S)
    except ChildDied as death:
        return None if death.death is Death.TIMED_OUT else False
    except RunError:
        return False
    return True


def _names(names: Sequence[str], answer: Answer) -> tuple[str, ...]:
    """The file's names, or the module's own paths where the numbers of outputs differ anyway."""
    given = tuple(names)
    return given if len(given) == len(answer.arrays) else answer.paths


def _failure(trial: Trial, kind: FailureKind, difference: Difference | None = None, message: str = "") -> Failure:
    return Failure(
        sizes=dict(trial.sizes), kind=kind, difference=difference, message=message, values=trial.values, seed=trial.seed
    )


def _is_slight(outcome: Outcome) -> bool:
    difference = outcome.difference if isinstance(outcome, Failure) else None
    return difference is not None and is_of_values(difference) and difference.excess < SLIGHT


def is_of_values(difference: Difference | None) -> bool:
    return difference is not None and difference.mismatch is Mismatch.VALUE
