"""The generalized rung: concrete traces of one structure -> one program whose numbers are expressions of the dims."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from anyshape.capture.generalized.built_program import Decompose
from anyshape.capture.generalized.learn import Learner, Plan
from anyshape.capture.generalized.learning_sizes import Answers
from anyshape.capture.generalized.main_program import build_captured
from anyshape.capture.generalized.record import Recorder, TraceKey
from anyshape.capture.generalized.template import Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import capture_sides, find_split
from anyshape.domain import Condition, Sizes
from anyshape.inputs import Declared
from anyshape.records.captured import Captured

_DEEPEST = 3
_MOST_SUSPECTS = 64


def capture_generalized(
    module: torch.nn.Module,
    declared: Declared,
    answers: Answers,
    decompose: Decompose,
    suspects: Sequence[Sizes] = (),
    traces: dict[TraceKey, Trace] | None = None,
) -> Captured:
    """Programs for the whole domain, learned from traces. Raises CaptureRefused with the line that no rule explains.

    `answers` says whether the module answers at given sizes in eager mode. Where the module does other things at other
    sizes there are several regions, each with its condition. `suspects` are sizes at which it may.
    """
    recorder = Recorder(module, declared, traces)
    plan = Plan(lay_over=_flat, also=suspects[:_MOST_SUSPECTS])

    def capture(declared: Declared) -> Captured:
        lesson = Learner(recorder, declared, answers, plan).learn()
        return build_captured("generalized", recorder.module, declared, lesson, decompose)

    def find_side(declared: Declared) -> Condition | None:
        return find_split(recorder, declared, answers, plan.largest, plan.also)

    return capture_sides(declared, capture, find_side, _DEEPEST)


def _flat(traces: Sequence[Trace]) -> Template:
    return lay_over(traces, [tuple(range(len(trace.steps))) for trace in traces], ())
