"""Traces -> rules that predict further traces: the loop around tracing, laying over and explaining.

A rule counts as found when traces that it has not seen leave it as it is. Where they change it, they join the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anyshape.capture.generalized.asked import ValueAsked
from anyshape.capture.generalized.explained_arguments import Explained, explain
from anyshape.capture.generalized.learning_sizes import Answers, first_sizes, telling_sizes
from anyshape.capture.generalized.not_learned import (
    CaptureRefused,
    not_predicted,
    not_traceable,
    traces_differ,
    value_asked,
)
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.template import Template, Unaligned
from anyshape.capture.generalized.trace import Trace
from anyshape.domain import Sizes
from anyshape.findings import AnyshapeError, Reason
from anyshape.inputs import Declared

LayOver = Callable[[Sequence[Trace]], Template]

_ROUNDS = 5
_MORE_TRACES = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to learn: how traces are laid over one another, at which sizes they are taken, and for how long.

    `also` are sizes that rules must predict, too, as far as they lie in the domain.
    """

    lay_over: LayOver
    first: int = 8
    unseen: int = 8
    largest: int = 40
    largest_unseen: int | None = None
    seconds: float = 60.0
    also: Sequence[Sizes] = ()


@dataclass(frozen=True)
class Lesson:
    """What was learned, from how many traces, and how many further ones it predicted."""

    explained: Explained
    traces: int
    predicted: int


class Learner:
    """Learns one module's program."""

    def __init__(self, recorder: Recorder, declared: Declared, answers: Answers, plan: Plan) -> None:
        self._recorder = recorder
        self._declared = declared
        self._answers = answers
        self._plan = plan

    def learn(self) -> Lesson:
        """Rules that held on unseen traces. Raises CaptureRefused."""
        plan, began = self._plan, time.monotonic()
        points = first_sizes(self._declared, self._answers, plan.largest, plan.first)
        traces = [self._trace(sizes) for sizes in points]
        for turn in range(_ROUNDS):
            try:
                explained = explain(self._laid(traces))
            except CaptureRefused as refusal:
                has_no_rule = refusal.finding.reason is Reason.NUMBER_WITHOUT_RULE
                more = self._more_traces(traces) if has_no_rule and turn < _MORE_TRACES else []
                if not more:
                    raise
                traces += more
                continue
            rules = explained.rules()
            sizes = telling_sizes(
                self._declared,
                self._answers,
                explained.fits.explained,
                [trace.sizes for trace in traces],
                plan.largest_unseen,
                plan.unseen,
            )
            known = [trace.sizes for trace in traces]
            sizes += [each for each in self._suspects() if each not in sizes and each not in known]
            fresh = [self._trace(each) for each in sizes]
            if not fresh:
                return Lesson(explained, len(traces), 0)
            again = explain(self._laid([*traces, *fresh]))
            if again.rules() == rules:
                return Lesson(again, len(traces), len(fresh))
            traces += fresh
            if time.monotonic() - began > plan.seconds:
                break
        raise not_predicted(None, _ROUNDS)

    def _more_traces(self, traces: Sequence[Trace]) -> list[Trace]:
        """Further traces for a number that few do not explain: `max(1, seq // 3)` is 1 at all small sizes."""
        known = [trace.sizes for trace in traces]
        sizes = telling_sizes(
            self._declared, self._answers, (), known, self._plan.largest_unseen, 2 * self._plan.unseen
        )
        return [self._trace(each) for each in sizes]

    def _suspects(self) -> list[dict[str, int]]:
        domain = self._declared.domain
        return [dict(sizes) for sizes in self._plan.also if domain.contains(sizes) and self._answers(sizes)]

    def _laid(self, traces: Sequence[Trace]) -> Template:
        try:
            return self._plan.lay_over(traces)
        except Unaligned as error:
            one, other = self._apart(traces)
            raise traces_differ(error.first, error.second, one, other) from None

    def _apart(self, traces: Sequence[Trace]) -> tuple[Sizes, Sizes]:
        """Two traces that do not fit together, for the message."""
        for trace in traces[1:]:
            if [step.letter for step in trace.steps] != [step.letter for step in traces[0].steps]:
                return trace.sizes, traces[0].sizes
        return traces[-1].sizes, traces[0].sizes

    def _trace(self, sizes: Sizes) -> Trace:
        try:
            return self._recorder.trace(sizes)
        except ValueAsked as error:
            raise value_asked(error.source, error.asked) from error
        except AnyshapeError:
            raise
        except Exception as error:
            raise not_traceable(error, sizes) from error
