"""Verify a file against its module: run the plan, the file ahead in further children, and count what was compared.

Integer inputs are also compared at values below the user's own (-1, where the inputs have 0 and more). A file that differs
only there is compared again without them, and the verdict has the lowest value for which the file is right.

Nothing that was not compared is called right: what the budget left out, the module refused or the values made
meaningless stands in the verdict as just that.

Trials are judged in the order of the plan whatever ends first, so the verdict is the same with one child and with many.
A further child is started only where waiting is what takes the time: its start costs as much as many runs of a small model.
One child and one worker, which calls the module, keep two cores busy: from the fourth core on, each child has a worker.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import fspath
from pathlib import Path
from time import monotonic

import torch

from anyshape.domain import holds
from anyshape.modules.state import RandomState
from anyshape.processes.idleness import Work
from anyshape.records.verdict import FailureKind, Verdict
from anyshape.runtime import ChildRunner
from anyshape.runtime.process import usable_cores
from anyshape.runtime.runtimes import ONNXRUNTIME
from anyshape.runtime.session import find_lacking_kernels
from anyshape.verify.changing_outputs import verify_samples
from anyshape.verify.file_copies import NOTE, Bfloat16Copy, copy_bfloat16_file
from anyshape.verify.float64_copy import Float64Copy
from anyshape.verify.locate import locate
from anyshape.verify.noise import NoiseFloor, Yardstick
from anyshape.verify.plan import Planned, choose_floor_sizes, plan_in_proportion
from anyshape.verify.reference import Refused
from anyshape.verify.request import VerifyOptions, VerifyRequest, file_bytes
from anyshape.verify.shrink import smallest_failure
from anyshape.verify.tally import Tally
from anyshape.verify.tolerance import roundings
from anyshape.verify.trial_runner import Outcome, Read, Started, Trial, TrialRunner, Unanswered

_CHEAP_BYTES = 1 << 27
_LOOKED_AT = 4
_WORTH_S = 3.0  # of waiting that a further child can spare us, at the least


def verify_from_lowest(request: VerifyRequest, run: Callable[[VerifyRequest], Verdict] | None = None) -> Verdict:
    """The verdict; where only lower integers than the inputs' make the file fail, that of the others.

    `run` makes the comparisons of the whole plan: here, unless they are spread over other machines.
    """
    verdict = (run or verify)(request)
    if not verdict.failures or any(failure.values == "random" for failure in verdict.failures):
        return verdict
    shown = request.lowest_shown()
    subsets = [{name: low} for name, low in shown.items()]
    for lowest in [*subsets, *([shown] if len(shown) > 1 else [])]:
        again = verify(_from(request, lowest))
        if again.passed:
            return replace(again, lowest=lowest)
    return verdict


def _from(request: VerifyRequest, lowest: Mapping[str, int]) -> VerifyRequest:
    bounds = {name: (float(low), math.inf) for name, low in lowest.items()}
    return replace(request, ranges=lambda sizes: {**request.ranges(sizes), **bounds})


def verify(request: VerifyRequest) -> Verdict:
    """Compare the file with the module at the given sizes, and shrink the failure if there is one."""
    random = RandomState()
    try:
        with _file(request) as path:
            verdict = _verify_file(request, path)
            is_unsupported = any(failure.kind is FailureKind.UNSUPPORTED for failure in verdict.failures)
            if is_unsupported and request.options.runs is None:
                verdict = _verify_bfloat16_copy(request, path) or verdict
            return replace(verdict, runtime=request.options.runtime)
    finally:
        random.restore()


def _verify_bfloat16_copy(request: VerifyRequest, path: str) -> Verdict | None:
    """Verify a copy of a bfloat16 file that the runtime can run, where there is one."""
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        bfloat16_copy = copy_bfloat16_file(path, folder)
        if bfloat16_copy is None:
            return None
        verdict = _verify_file(
            replace(request, feeds=lambda inputs: bfloat16_copy.feeds(request.feeds(inputs))), bfloat16_copy
        )
        return replace(
            verdict, floor=f"{verdict.floor}; {NOTE}", is_of_copy=True, no_kernels=find_lacking_kernels(path)
        )


def _verify_file(request: VerifyRequest, file: str | Bfloat16Copy) -> Verdict:
    path = file if isinstance(file, str) else file.path
    with _runner(request, path) as runner:
        if request.options.is_random:
            return verify_samples(request, runner)
        return _verify(request, path, runner, list if isinstance(file, str) else file.outputs)


def _verify(request: VerifyRequest, path: str, runner: ChildRunner, read: Read) -> Verdict:
    started, work = monotonic(), Work()
    options = request.options
    runner.start()  # it loads while the floor is measured
    planned = plan_in_proportion(request) if request.plan is None else request.plan.planned()
    is_measured = options.rtol is None and options.atol is None
    yardstick = Yardstick(request.reference, in_doubles=options.in_doubles) if is_measured else None
    floor = _measure(request, path, yardstick, planned)
    with _float64_copy(request, path) as float64_copy:
        trial_runner = TrialRunner(request, path, runner, yardstick, floor, read, float64_copy)
        verdict = _tried(request, trial_runner, planned, started, work)
        return replace(verdict, untried_values=planned.untried_values)


def _tried(request: VerifyRequest, trial_runner: TrialRunner, planned: Planned, started: float, work: Work) -> Verdict:
    options, path = request.options, trial_runner.path
    tally = Tally(request)
    place, count = options.share
    trials = planned.trials[place::count]
    with Prefetcher(trial_runner, trials, lambda: _runner(request, path), _most_children(request, path)) as ahead:
        for done, trial in enumerate(trials):
            if tally.trials and monotonic() - started > options.clock_s:
                tally.stop_clock(trials[done:], options.clock_s)
                break
            if options.progress is not None:
                options.progress(done, len(trials), trial.sizes)
            if not tally.is_settled(trial):
                tally.add(trial, ahead.run(done, tally.is_settled))
            if tally.is_hopeless or _has_failed_enough(tally, options):
                break
            if tally.refutes_rules:
                _note_refusals(request, trials[done + 1 :], tally)
                tally.break_off(trials[done + 1 :])
                break
    for left in planned.untried:
        tally.give_up(left.sizes, left.why)
    smallest = smallest_failure(trial_runner, tally.failures, work)
    if smallest is not None and options.runtime == ONNXRUNTIME.name:  # which runs the parts of the file
        smallest = replace(smallest, located=locate(request, path, tally.failures, smallest))
    return tally.verdict(
        smallest, trial_runner.floor.how if trial_runner.yardstick is not None else "the user's", monotonic() - started
    )


def _note_refusals(request: VerifyRequest, trials: Sequence[Trial], tally: Tally) -> None:
    """Note where else the module raises, at the smaller half of these sizes: rules are learned from all of them at once."""
    draws = {
        tuple(trial.sizes.items()): trial for trial in trials if trial.edge is None and not tally.is_settled(trial)
    }
    for trial in sorted(draws.values(), key=lambda trial: math.prod(trial.sizes.values()))[: len(draws) // 2]:
        answer = request.reference.recall(request.make(trial.sizes, trial.seed))
        if isinstance(answer, Refused):
            tally.add(trial, Unanswered(answer, file_answers=None))


def _has_failed_enough(tally: Tally, options: VerifyOptions) -> bool:
    inside = options.ends_outside
    if inside is not None and any(each.values == "random" and not holds(inside, each.sizes) for each in tally.failures):
        return True
    most = 1 if options.stop_at_failure else options.most_failures
    return most is not None and len(tally.failures) >= most


def _measure(request: VerifyRequest, path: str, yardstick: Yardstick | None, planned: Planned) -> NoiseFloor:
    """The noise floor, at sizes that the plan has for it."""
    if yardstick is None:
        return NoiseFloor()
    sizes = choose_floor_sizes(request, planned) if request.plan is None else request.plan.floor
    samples = [request.make(each, request.options.seed) for each in sizes]
    return replace(yardstick.measure(samples), roundings=roundings(path, request.reference, samples))


def _most_children(request: VerifyRequest, path: str) -> int:
    """One for each core; one alone for large weights, which each would hold for itself, and for custom operators, whose
    functions run here and need not bear being called twice at a time."""
    return usable_cores() if file_bytes(path) <= _CHEAP_BYTES and not request.operators else 1


def _threads(request: VerifyRequest, path: str) -> int:
    """What the user gave; else one, since each core may have a child, or all of them for a file that has one child alone."""
    if request.options.threads is not None:
        return request.options.threads
    return 1 if file_bytes(path) <= _CHEAP_BYTES else min(usable_cores(), torch.get_num_threads())


@contextmanager
def _file(request: VerifyRequest) -> Iterator[str]:
    if not isinstance(request.model, bytes):
        yield fspath(request.model)
        return
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(request.model)
        yield str(path)


@contextmanager
def _float64_copy(request: VerifyRequest, path: str) -> Iterator[Float64Copy | None]:
    # Functions of operators take what the module gives them; OpenVINO computes doubles as floats.
    if request.operators or request.options.runtime != ONNXRUNTIME.name:
        yield None
        return
    with Float64Copy(path, lambda copy: _runner(request, copy)) as float64_copy:
        yield float64_copy


def _runner(request: VerifyRequest, path: str) -> ChildRunner:
    options = request.options
    return ChildRunner(
        options.runs or path,
        threads=_threads(request, path),
        time_limit_s=options.run_limit_s,
        memory_limit=options.memory_limit,
        operators=request.operators,
        providers=options.providers,
        runtime=options.runtime,
    )


def _has_cores(children: int) -> bool:
    """Whether each of so many children can have a worker beside it that calls the module."""
    return 2 * children <= usable_cores()


class Prefetcher:
    """The trials of a plan, each run once, those to come in the children that are free."""

    def __init__(
        self, trial_runner: TrialRunner, trials: Sequence[Trial], hire: Callable[[], ChildRunner], most: int
    ) -> None:
        self._trial_runner = trial_runner
        self._trials = trials
        self._hire = hire
        self._most = most
        self._runners = [trial_runner.runner]
        self._started: dict[int, Started] = {}
        self._done = 0
        self._waited_s = 0.0  # for the file, where the module had answered
        self._took_s = 0.0

    def run(self, place: int, is_settled: Callable[[Trial], bool]) -> Outcome:
        """The outcome of the trial at this place of the plan; `is_settled`: which need not be run at all."""
        self._drop_before(place)
        if self._is_worth_another(place):
            self._runners.append(self._hire())
        self._look_ahead(place, is_settled)
        started, began = self._started.pop(place), monotonic()
        outcome = self._trial_runner.run(self._trials[place], started)
        self._done += 1
        self._waited_s += started.pending.waited_s
        self._took_s += monotonic() - began
        return outcome

    def _is_worth_another(self, place: int) -> bool:
        if len(self._runners) >= self._most or self._done < _LOOKED_AT * len(self._runners):
            return False
        spared_s = self._took_s if _has_cores(len(self._runners) + 1) else self._waited_s
        to_come = spared_s / self._done * (len(self._trials) - place)
        return to_come * (1 - len(self._runners) / (len(self._runners) + 1)) > _WORTH_S

    def _look_ahead(self, place: int, is_settled: Callable[[Trial], bool]) -> None:
        """This trial and as many of the next ones as there are children."""
        busy = [started.runner for started in self._started.values()]
        free = [runner for runner in self._runners if runner not in busy]
        coming = (each for each in range(place, len(self._trials)) if each not in self._started)
        for each in coming:
            if not free:
                return
            if each == place or not is_settled(self._trials[each]):
                with_module = each != place and _has_cores(len(self._runners))
                self._started[each] = self._trial_runner.start(self._trials[each], free.pop(0), with_module=with_module)

    def _drop_before(self, place: int) -> None:
        """Runs of trials that were settled before their turn."""
        for each in [each for each in self._started if each < place]:
            self._trial_runner.discard(self._started.pop(each))

    def close(self) -> None:
        """End the further children."""
        self._drop_before(len(self._trials))
        for runner in self._runners[1:]:
            runner.close()
        del self._runners[1:]

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
