"""Count what the trials of a verification have shown, as a verdict; join the verdicts of shares of one plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from anyshape.domain import Sizes
from anyshape.records.verdict import (
    ComparedSizes,
    Failure,
    FailureKind,
    OutputError,
    Refusal,
    RoundedOtherwise,
    Untried,
    Verdict,
)
from anyshape.verify.request import VerifyRequest
from anyshape.verify.trial_runner import Equal, Outcome, SetAside, Trial

HOPELESS = (FailureKind.REJECTED, FailureKind.UNSUPPORTED)
_Key = tuple[tuple[str, int], ...]
_NOT_COMPARED = "no share of the comparisons has these sizes"


class Tally:
    """What the trials have shown so far."""

    def __init__(self, request: VerifyRequest) -> None:
        self._request = request
        self._tried: set[_Key] = set()
        self._untried: dict[_Key, Untried] = {}
        self._refused: dict[_Key, Refusal] = {}
        self._worst: list[OutputError] = []
        self._errors: dict[_Key, dict[str, float]] = {}
        self._rounded: dict[str, RoundedOtherwise] = {}
        self._set_aside: Counter[str] = Counter()
        self._stopped_after: float | None = None
        self._is_broken_off = False
        self._at_nan: list[Failure] = []
        self.failures: list[Failure] = []
        self.trials = 0

    def is_settled(self, trial: Trial) -> bool:
        """Whether another trial at these sizes can add nothing: the module refused them, or the file failed there."""
        failed = any(dict(failure.sizes) == dict(trial.sizes) for failure in self.failures)
        return failed or _key(trial.sizes) in self._refused

    @property
    def refutes_rules(self) -> bool:
        """Whether the module raised at sizes of the domain that are not known as such, and the file has not failed."""
        known = self._request.options.known_refused
        if known is None or self.failures:
            return False
        sizes = [refused.sizes for refused in self._refused.values() if refused.sizes not in known]
        return any(map(self._request.domain.contains, sizes))

    @property
    def is_hopeless(self) -> bool:
        return any(failure.kind in HOPELESS for failure in self.failures)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        self.trials += 1
        key = _key(trial.sizes)
        if isinstance(outcome, Failure) and trial.edge is not None and trial.edge.is_note:
            self._at_nan.append(outcome)
            return
        if isinstance(outcome, (Equal, Failure)):
            self._tried.add(key)
        if isinstance(outcome, Failure):
            self.failures.append(outcome)
        elif isinstance(outcome, Equal):
            self._note_errors(key, outcome)
            self._note_rounding(trial, outcome)
        elif isinstance(outcome, SetAside):
            self._set_aside[f"{trial.values}: {outcome.why}"] += 1
        elif trial.edge is not None:
            self._set_aside[f"{trial.values}: the module refuses them"] += 1
        elif outcome.refused.memory:
            self.give_up(trial.sizes, "the module ran out of memory")
        else:
            refused = outcome.refused
            self._refused[key] = Refusal(dict(trial.sizes), refused.message, refused.source, outcome.file_answers)

    def give_up(self, sizes: Sizes, why: str, *, is_out_of_time: bool = False) -> None:
        self._untried.setdefault(_key(sizes), Untried(dict(sizes), why, is_out_of_time))

    def stop_clock(self, trials: Iterable[Trial], seconds: float) -> None:
        """Give up all of these trials: the verification has run for so long."""
        self._stopped_after = seconds
        for trial in trials:
            self.give_up(trial.sizes, f"the comparisons had run for {seconds:g} s", is_out_of_time=True)

    def break_off(self, trials: Iterable[Trial]) -> None:
        """Give up all of these trials: the rules about where the module answers are learned again."""
        self._is_broken_off = True
        for trial in trials:
            self.give_up(trial.sizes, "the module raised at sizes at which it seemed to answer")

    def _note_errors(self, key: _Key, outcome: Equal) -> None:
        names = self._request.output_names
        found = [
            OutputError(name, excess * allowed, allowed)
            for name, excess, allowed in zip(names, outcome.excess, outcome.allowed, strict=False)
        ]
        here = self._errors.setdefault(key, {})
        here.update({each.output: max(each.worst, here.get(each.output, 0.0)) for each in found})
        if not self._worst:
            self._worst = found
        else:
            self._worst = [
                max(one, two, key=lambda error: error.worst) for one, two in zip(self._worst, found, strict=False)
            ]

    def _note_rounding(self, trial: Trial, outcome: Equal) -> None:
        for name, times in zip(self._request.output_names, outcome.rounded, strict=False):
            known = self._rounded.get(name)
            if times > 1.0 and (known is None or known.tolerances < times):
                self._rounded[name] = RoundedOtherwise(name, times, dict(trial.sizes))

    def verdict(self, smallest: Failure | None, floor: str, seconds: float) -> Verdict:
        for untried in self._request.left_out:
            self.give_up(untried.sizes, untried.why)
        for sizes in self._planned:
            if self.failures:
                self.give_up(sizes, "the comparisons ended with a failure")
        left = [
            untried for key, untried in self._untried.items() if key not in self._tried and key not in self._refused
        ]
        return Verdict(
            tried=tuple(dict(key) for key in dict.fromkeys(map(_key, self._planned)) if key in self._tried),
            failures=tuple(self.failures),
            at_nan=tuple(self._at_nan),
            smallest_failure=smallest,
            refused=tuple(self._refused.values()),
            untried=tuple(left),
            outputs=tuple(self._worst),
            compared=tuple(self._compared()),
            rounded=tuple(self._rounded.values()),
            trials=self.trials,
            set_aside=dict(self._set_aside),
            floor=floor,
            seconds=seconds,
            stopped_after=self._stopped_after,
            is_broken_off=self._is_broken_off,
        )

    def _compared(self) -> Iterator[ComparedSizes]:
        """The sizes at which every comparison was equal, in the order of the plan."""
        failed = {_key(failure.sizes) for failure in self.failures}
        order = dict.fromkeys([*map(_key, self._planned), *self._errors])
        return (ComparedSizes(dict(key), self._errors[key]) for key in order if key in self._errors.keys() - failed)

    @property
    def _planned(self) -> tuple[Sizes, ...]:
        return (*self._request.sizes, *self._request.once)


def _key(sizes: Sizes) -> _Key:
    return tuple(sizes.items())


def join_verdicts(shares: Sequence[Verdict], planned: Iterable[Sizes]) -> Verdict:
    """What the shares have shown together; `planned` are all sizes of the plan, and stay accounted for.

    A size that one share compared is tried, whatever the others say of it. Failures come in the order of the shares.
    """
    first = shares[0]
    tried = {_key(sizes): sizes for share in shares for sizes in share.tried}
    refused = {_key(each.sizes): each for share in shares for each in share.refused}
    untried = {_key(each.sizes): each for share in shares for each in share.untried}
    compared = _joined_errors(shares)
    order = dict.fromkeys(map(_key, planned))
    known = {*tried, *refused, *untried}
    untried |= {key: Untried(dict(key), _NOT_COMPARED) for key in order if key not in known}
    stopped = [share.stopped_after for share in shares if share.stopped_after is not None]
    return replace(
        first,
        tried=tuple(dict(key) for key in dict.fromkeys([*order, *tried]) if key in tried),
        compared=tuple(compared[key] for key in dict.fromkeys([*order, *compared]) if key in compared),
        failures=tuple(failure for share in shares for failure in share.failures),
        smallest_failure=_smallest(share.smallest_failure for share in shares),
        refused=tuple(refused.values()),
        untried=tuple(each for key, each in untried.items() if key not in tried and key not in refused),
        outputs=_worst(share.outputs for share in shares),
        rounded=_most_rounded(each for share in shares for each in share.rounded),
        trials=sum(share.trials for share in shares),
        set_aside=dict(sum((Counter(share.set_aside) for share in shares), Counter())),
        seconds=max(share.seconds for share in shares),
        stopped_after=max(stopped, default=None),
        is_broken_off=any(share.is_broken_off for share in shares),
        at_nan=tuple(failure for share in shares for failure in share.at_nan),
    )


def _joined_errors(shares: Sequence[Verdict]) -> dict[tuple[tuple[str, int], ...], ComparedSizes]:
    """The worst errors at each size at which no share has a failure."""
    failed = {_key(failure.sizes) for share in shares for failure in share.failures}
    joined: dict[tuple[tuple[str, int], ...], ComparedSizes] = {}
    for each in (compared for share in shares for compared in share.compared):
        key = _key(each.sizes)
        known = joined[key].errors if key in joined else {}
        names = dict.fromkeys([*known, *each.errors])
        worst = {name: max(known.get(name, 0.0), each.errors.get(name, 0.0)) for name in names}
        if key not in failed:
            joined[key] = replace(each, errors=worst)
    return joined


def _smallest(failures: Iterable[Failure | None]) -> Failure | None:
    found = [failure for failure in failures if failure is not None]
    return min(found, key=lambda failure: prod(size + 1 for size in failure.sizes.values()), default=None)


def _worst(outputs: Iterable[Sequence[OutputError]]) -> tuple[OutputError, ...]:
    worst: dict[str, OutputError] = {}
    for each in (error for errors in outputs for error in errors):
        known = worst.get(each.output)
        worst[each.output] = each if known is None or each.worst > known.worst else known
    return tuple(worst.values())


def _most_rounded(rounded: Iterable[RoundedOtherwise]) -> tuple[RoundedOtherwise, ...]:
    most: dict[str, RoundedOtherwise] = {}
    for each in rounded:
        known = most.get(each.output)
        most[each.output] = each if known is None or each.tolerances > known.tolerances else known
    return tuple(most.values())
