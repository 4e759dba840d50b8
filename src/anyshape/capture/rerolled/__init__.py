"""The rung that rolls Python loops up again: traces that grow with a dim contain a repeated block.

This file: `capture_rerolled` makes a program with loops of such traces, and `find_stride` finds loops that take one more step
only after several sizes of a dim:

    for i in range((seq + 63) // 64)     captured at seq = 5  ->  (seq + 63) // 64 == 1
    sizes at which this is 1, 2, 3, 4    ->  traces that grow by as many operations each time: a stride of 64

Files, in the order in which data flows:

    growth         whether traces grow with a dim, and at which sizes to trace
    functional     writes into tensors -> new tensors
    late           steps of which values decide the size -> right before their first use
    blocks         x a b c a b c y -> x (a b c)*2 y
    demands        which values of a loop the rest needs
    emit           a block of the template -> a node anyshape::loop and its body
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from anyshape.capture.generalized import build_captured
from anyshape.capture.generalized.learn import NO_STRIDES, Answers, LearnedProgram, Learner, Plan, Strides
from anyshape.capture.generalized.not_learned import NotCaptured, write_in_loop
from anyshape.capture.generalized.record import Recorder, TraceKey
from anyshape.capture.generalized.template import Repeated, Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import capture_sides
from anyshape.capture.rerolled.blocks import roll_up
from anyshape.capture.rerolled.emit import LoopEmitter
from anyshape.capture.rerolled.functional import find_write, without_writes
from anyshape.capture.rerolled.growth import choose_suspects, find_side, grows_evenly
from anyshape.capture.rerolled.late import open_sizes_late
from anyshape.capture.torch_export import Decompose
from anyshape.domain import Compare, Condition, Expr, Number, Ref, Sizes, dims_of, smallest_known_point
from anyshape.findings import Reason
from anyshape.inputs import Declared
from anyshape.records.captured import Captured

__all__ = ["capture_rerolled", "find_stride"]


_STEPS = 5
_FEWEST = 4
_MOST_EXPRESSIONS = 8
_ELEMENTS = 4_000_000
_ATTEMPTS = ((12, False), (36, True))
"""How long traces may be, and whether loops such as `d *= 2` are allowed: traces of loops are as long as their loops,
so few steps first, and more where a block repeats too rarely to be seen."""
_DEEPEST = 2
_LONG = 1200


def find_stride(
    recorder: Recorder, declared: Declared, answers: Answers, conditions: Iterable[Condition]
) -> tuple[str, int, Condition] | None:
    """A dim with its stride, and the condition that shows it; None if traces grow with none of these conditions."""
    for condition, dim in _pins(conditions):
        points = list(_points(declared, condition, dim))
        chosen = points[1:] if len(points) == _STEPS else points  # the smallest sizes may have a path of their own
        stride = _stride([point[dim] for point in chosen])
        if stride is not None and all(map(answers, chosen)) and grows_evenly(recorder, chosen):
            return dim, stride, condition
    return None


def _stride(sizes: Sequence[int]) -> int | None:
    """How far sizes are apart; None if there are too few, or they are not all as far apart, or next to each other."""
    gaps = {later - before for before, later in itertools.pairwise(sizes)}
    return gaps.pop() if len(sizes) >= _FEWEST and len(gaps) == 1 and min(gaps) > 1 else None


def around_strides(declared: Declared, strides: Strides) -> list[Sizes]:
    """Sizes on both sides of the ends of the first parts: what is cut, padded or left over changes there."""
    example = declared.example_sizes
    return [
        {**example, name: size}
        for name, stride in strides.items()
        for size in (stride - 1, stride, stride + 1, 2 * stride)
    ]


def _pins(conditions: Iterable[Condition]) -> Iterator[tuple[Compare, str]]:
    """Conditions that an expression which is no dim itself equals a number, with each dim of it."""
    pins = (part for part in dict.fromkeys(conditions) if isinstance(part, Compare) and part.op == "==")
    expressions = (pin for pin in pins if isinstance(pin.right, Number) and not isinstance(pin.left, (Ref, Number)))
    for pin in itertools.islice(expressions, _MOST_EXPRESSIONS):
        yield from ((pin, dim) for dim in sorted(dims_of(pin.left)))


def _points(declared: Declared, pin: Compare, dim: str) -> Iterator[Sizes]:
    """The smallest sizes of the dim at which the expression has its value, one more, and so on, beside those of the example."""
    assert isinstance(pin.right, Number)
    example = declared.example_sizes
    usual = [Compare("==", Ref(name), Number(size)) for name, size in example.items() if name != dim]
    for value in range(pin.right.value, pin.right.value + _STEPS):
        point = _smallest(declared, pin.left, value, usual)
        if point is None or declared.elements(point) > _ELEMENTS:
            return
        yield point


def _smallest(declared: Declared, expr: Expr, value: int, usual: Iterable[Condition]) -> Sizes | None:
    return smallest_known_point(declared.domain, Compare("==", expr, Number(value)), *usual)


def capture_rerolled(
    module: torch.nn.Module,
    declared: Declared,
    answers: Answers,
    decompose: Decompose,
    suspects: Sequence[Sizes] = (),
    traces: dict[TraceKey, Trace] | None = None,
    strides: Strides = NO_STRIDES,
) -> Captured:
    """Programs with loops for the whole domain. Raises NotCaptured with the line that no rule explains.

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
        learned_program = self._learn(declared)
        emitter = LoopEmitter(learned_program.explained, declared.domain, self.decompose)
        return build_captured("rerolled", self.recorder.module, declared, learned_program, self.decompose, emitter)

    def find_side(self, declared: Declared) -> Condition | None:
        return find_side(self.recorder, declared, self.answers, self.suspects, self.strides)

    def _learn(self, declared: Declared) -> LearnedProgram:
        refusals: list[NotCaptured] = []
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
            except NotCaptured as refusal:
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
        functional = [open_sizes_late(without_writes(trace)) for trace in traces]
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
