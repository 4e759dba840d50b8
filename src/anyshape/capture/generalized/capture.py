"""The generalized rung: concrete traces of one structure -> one program whose numbers are expressions of the dims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from anyshape.capture.generalized.learn import Learner, Plan
from anyshape.capture.generalized.main_program import build_captured
from anyshape.capture.generalized.program import Decompose
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.refusals import PATH_DEPENDS_ON_SIZE, CaptureRefused
from anyshape.capture.generalized.regions import find_split, join, under
from anyshape.capture.generalized.sizes import Answers, Sizes
from anyshape.capture.generalized.template import Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.domain import Condition, negate
from anyshape.inputs import Declared
from anyshape.records.captured import Captured

_DEEPEST = 3


def capture_generalized(
    module: torch.nn.Module,
    declared: Declared,
    answers: Answers,
    decompose: Decompose,
    suspects: Sequence[Sizes] = (),
) -> Captured:
    """Programs for the whole domain, learned from traces. Raises CaptureRefused with the line that no rule explains.

    `answers` says whether the module answers at given sizes in eager mode. Where the module does other things at other
    sizes there are several regions, each with its condition. `suspects` are sizes at which it may.
    """
    return _Generalizing(module, answers, decompose, Recorder(module, declared), suspects).capture(declared, _DEEPEST)


@dataclass(frozen=True)
class _Generalizing:
    """One module, over the domain or over a part of it."""

    module: torch.nn.Module
    answers: Answers
    decompose: Decompose
    recorder: Recorder
    suspects: Sequence[Sizes]

    def capture(self, declared: Declared, depth: int) -> Captured:
        plan = Plan(lay_over=_flat, also=self.suspects)
        try:
            lesson = Learner(self.recorder, declared, self.answers, plan).learn()
        except CaptureRefused as refusal:
            if refusal.finding.code != PATH_DEPENDS_ON_SIZE or depth == 0:
                raise
            return self._both_sides(declared, depth, refusal)
        return build_captured("generalized", self.module, declared, lesson, self.decompose)

    def _both_sides(self, declared: Declared, depth: int, refusal: CaptureRefused) -> Captured:
        condition = find_split(self.recorder, declared, self.answers, Plan(lay_over=_flat).largest, self.suspects)
        if condition is None:
            raise refusal
        first, second = (self._side(declared, side, depth) for side in (condition, negate(condition)))
        if len(first.answers) != len(second.answers):
            raise refusal
        return join(first, second)

    def _side(self, declared: Declared, condition: Condition, depth: int) -> Captured:
        narrowed = replace(declared, domain=declared.domain.narrowed(condition))
        return under(condition, self.capture(narrowed, depth - 1))


def _flat(traces: Sequence[Trace]) -> Template:
    return lay_over(traces, [tuple(range(len(trace.steps))) for trace in traces], ())
