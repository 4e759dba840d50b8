"""The generalized rung: concrete traces of one structure -> one program whose numbers are expressions of the dims."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from anyshape.capture.generalized.learn import Learner, Plan
from anyshape.capture.generalized.main_program import build_captured
from anyshape.capture.generalized.program import Decompose
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.sizes import Answers
from anyshape.capture.generalized.template import Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.inputs import Declared
from anyshape.records.captured import Captured


def capture_generalized(
    module: torch.nn.Module, declared: Declared, answers: Answers, decompose: Decompose
) -> Captured:
    """One program for the whole domain, learned from traces. Raises CaptureRefused with the line that no rule explains.

    `answers` says whether the module answers at given sizes in eager mode.
    """
    recorder = Recorder(module, declared)
    lesson = Learner(recorder, declared, answers, Plan(lay_over=_flat)).learn()
    return build_captured("generalized", module, declared, lesson, decompose)


def _flat(traces: Sequence[Trace]) -> Template:
    return lay_over(traces, [tuple(range(len(trace.steps))) for trace in traces], ())
