"""The rerolled rung: traces that grow with a dim -> programs with loops in them, one where the loop has one form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from anyshape.capture.generalized.built_program import Decompose
from anyshape.capture.generalized.generalized_rung import build_captured
from anyshape.capture.generalized.learn import NO_STRIDES, Answers, Learner, Lesson, Plan, Strides
from anyshape.capture.generalized.not_learned import CaptureRefused, write_in_loop
from anyshape.capture.generalized.record import Recorder, TraceKey
from anyshape.capture.generalized.template import Repeated, Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import capture_sides
from anyshape.capture.rerolled.blocks import roll_up
from anyshape.capture.rerolled.emit import LoopEmitter
from anyshape.capture.rerolled.functional import find_write, without_writes
from anyshape.capture.rerolled.growth import choose_suspects, find_side
from anyshape.capture.rerolled.strides import around_strides
from anyshape.domain import Condition, Sizes
from anyshape.findings import Reason
from anyshape.inputs import Declared
from anyshape.records.captured import Captured

_ATTEMPTS = ((12, False), (36, True))
"""How long traces may be, and whether loops such as `d *= 2` are allowed: traces of loops are as long as their loops,
so few steps first, and more where a block repeats too rarely to be seen."""
_DEEPEST = 2
_LONG = 1200


def capture_rerolled(
    module: torch.nn.Module,
    declared: Declared,
    answers: Answers,
    decompose: Decompose,
    suspects: Sequence[Sizes] = (),
    traces: dict[TraceKey, Trace] | None = None,
    strides: Strides = NO_STRIDES,
) -> Captured:
    """Programs with loops for the whole domain. Raises CaptureRefused with the line that no rule explains.

    `answers`: whether the module answers at given sizes in eager mode; `suspects` are sizes near numbers of the user's
    code, where a branch may switch; `strides` are those of loops that take a dim in parts.
    """
    recorder = Recorder(module, declared, traces)
    telling = choose_suspects(recorder, declared, answers, suspects, strides)
    telling += [sizes for sizes in around_strides(declared, strides) if sizes not in telling]
    rerolling = _Rerolling(answers, decompose, recorder, telling, strides)
    return capture_sides(declared, rerolling.capture, rerolling.find_side, _DEEPEST)


@dataclass(frozen=True)
class _Rerolling:
    """One module, over the domain or over a part of it."""

    answers: Answers
    decompose: Decompose
    recorder: Recorder
    suspects: Sequence[Sizes]
    strides: Strides

    def capture(self, declared: Declared) -> Captured:
        lesson = self._learn(declared)
        emitter = LoopEmitter(lesson.explained, declared.domain, self.decompose)
        return build_captured("rerolled", self.recorder.module, declared, lesson, self.decompose, emitter)

    def find_side(self, declared: Declared) -> Condition | None:
        return find_side(self.recorder, declared, self.answers, self.suspects, self.strides)

    def _learn(self, declared: Declared) -> Lesson:
        refusals: list[CaptureRefused] = []
        for largest, powers in _ATTEMPTS:
            plan = Plan(
                lay_over=_rolling(declared, powers),
                first=7,
                unseen=6,
                largest=largest,
                largest_unseen=largest,
                also=self.suspects,
                strides=self.strides,
            )
            try:
                return Learner(self.recorder, declared, self.answers, plan).learn()
            except CaptureRefused as refusal:
                refusals.append(refusal)
                if refusal.finding.reason is Reason.VALUES_DECIDE or self._is_long(declared, largest):
                    break
        raise refusals[0]

    def _is_long(self, declared: Declared, largest: int) -> bool:
        """Whether traces at these sizes have so many steps that a block cannot have been too rare to be seen."""
        sizes = {name: max(size, largest) for name, size in declared.example_sizes.items()}
        if not declared.domain.contains(sizes) or not self.answers(sizes):
            return False
        return len(self.recorder.trace(sizes).steps) > _LONG


def _rolling(declared: Declared, powers: bool) -> Callable[[Sequence[Trace]], Template]:
    def lay(traces: Sequence[Trace]) -> Template:
        functional = [without_writes(trace) for trace in traces]
        written = next(filter(None, map(find_write, functional)), None)
        template = lay_over(functional, roll_up(functional), _counters(declared), powers=powers)
        if written is not None and any(isinstance(item, Repeated) for item in template.items):
            raise write_in_loop(written)
        return template

    return lay


class _Counters:
    """Names for counters that are no dims of the user's."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = set(taken)

    def __iter__(self) -> Iterator[str]:
        for name in ("i", "j", "k", *(f"i{number}" for number in range(1000))):
            if name not in self._taken:
                yield name


def _counters(declared: Declared) -> list[str]:
    names = iter(_Counters(declared.domain.names))
    return [name for name, _ in zip(names, range(400), strict=False)]
