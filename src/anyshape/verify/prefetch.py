"""Run the file for coming trials in further child processes, while the current trial is compared.

Trials are judged in the order of the plan whatever ends first, so the verdict is the same with one child and with many.
A further child is started only where waiting for the file is what takes the time: its start costs as much as many runs
of a small model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anyshape.runtime.client import ChildRunner
from anyshape.verify.trial_runner import Outcome, Started, Trial, TrialRunner

_LOOKED_AT = 4
_WORTH_S = 3.0  # of waiting that a further child can spare us, at the least


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
        self._waited_s = 0.0

    def run(self, place: int, is_settled: Callable[[Trial], bool]) -> Outcome:
        """The outcome of the trial at this place of the plan; `is_settled`: which need not be run at all."""
        self._drop_before(place)
        if self._is_worth_another(place):
            self._runners.append(self._hire())
        self._look_ahead(place, is_settled)
        started = self._started.pop(place)
        outcome = self._trial_runner.run(self._trials[place], started)
        self._done += 1
        self._waited_s += started.pending.waited_s
        return outcome

    def _is_worth_another(self, place: int) -> bool:
        if len(self._runners) >= self._most or self._done < _LOOKED_AT * len(self._runners):
            return False
        to_come = self._waited_s / self._done * (len(self._trials) - place)
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
                self._started[each] = self._trial_runner.start(self._trials[each], free.pop(0))

    def _drop_before(self, place: int) -> None:
        """Runs of trials that were settled before their turn."""
        for each in [each for each in self._started if each < place]:
            self._started.pop(each).pending.discard()

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
