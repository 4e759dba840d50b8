"""The generalized rung: concrete traces of one structure -> one program whose numbers are expressions of the dims.

Sizes are read from the inputs, weights from the module.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch.fx import Node

from anyshape.capture.generalized.built_program import (
    Decompose,
    Learned,
    declared_sizes,
    export_graph,
    open_axes,
    places_of_dims,
    symbols_of,
)
from anyshape.capture.generalized.graph_frames import EmitLoop, Frame, held_name
from anyshape.capture.generalized.learn import Answers, Learner, Lesson, Plan, accidents
from anyshape.capture.generalized.not_learned import dim_unreadable
from anyshape.capture.generalized.operands import InputOperand, Operand, WeightOperand
from anyshape.capture.generalized.record import Recorder, TraceKey, open_values
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.template import Repeated, Template, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import capture_sides, find_split
from anyshape.capture.guards import collect_guards, shape_environment
from anyshape.capture.sympy_terms import outputs_of
from anyshape.domain import Condition, Op, Sizes
from anyshape.graphs.size_places import readings_of
from anyshape.inputs import Declared
from anyshape.modules.state import kept
from anyshape.records.captured import Captured, Guard, Loop, Region

_EXPORTS = 3


class MainFrame(Frame):
    """The frame of the whole program: its inputs are the open leaves."""

    def __init__(self, module: torch.nn.Module, lesson: Lesson, declared: Declared, emit_loop: EmitLoop | None) -> None:
        self._module = module
        super().__init__(lesson.explained, declared.domain, (), emit_loop)
        self._inputs = [
            self.scope.graph.placeholder(f"leaf_{position}") for position, _ in enumerate(declared.open_leaves)
        ]
        places = places_of_dims(declared)
        self._places = {place.key: place for place in places}
        self._numbers = {str(index) for index, leaf in enumerate(declared.open_leaves) if leaf.number is not None}
        self._readings = {reading.dim: reading.value for reading in readings_of(declared.domain, places)}
        self._names: dict[str, Node] = {}

    def read(self, scope: Scope, name: str) -> Size:
        if name in self._places:
            place = self._places[name]
            leaf = self._inputs[int(place.input)]
            return leaf if place.input in self._numbers else scope.call(torch.ops.aten.sym_size.int, leaf, place.axis)
        if name not in self._readings:
            raise dim_unreadable(name)
        value = self._readings[name]
        if isinstance(value, Op) and value.symbol == "//":  # without a rest
            return scope.call(operator.floordiv, *map(scope.size, value.args))
        return scope.size(value)

    def outer(self, operand: Operand) -> Node:
        if isinstance(operand, InputOperand):
            return self._inputs[operand.position]
        assert isinstance(operand, WeightOperand), operand
        return self._held(operand)

    def _held(self, operand: WeightOperand) -> Node:
        name = held_name(operand)
        if not _is_attribute(self._module, name):
            return self.constant(f"held_{len(self.constants)}", operand.weight.tensor)
        return self.scope.graph.get_attr(name)

    def constant(self, name: str, tensor: torch.Tensor) -> Node:
        self.constants[name] = tensor
        return self.scope.graph.create_node("get_attr", name)


def _is_attribute(module: torch.nn.Module, path: str) -> bool:
    found: Any = module
    for part in path.split(".")[1:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return isinstance(found, torch.Tensor)


class Emitter(Protocol):
    """What builds loops: see the rerolled rung."""

    guards: list[Guard]

    def emit(self, frame: Frame, loop: Repeated, /) -> None: ...
    def loops_of(self, frame: Frame, /) -> Mapping[str, Loop]: ...


def build_captured(
    strategy: str,
    module: torch.nn.Module,
    declared: Declared,
    lesson: Lesson,
    decompose: Decompose,
    emitter: Emitter | None = None,
) -> Captured:
    """The program exported at the sizes of a trace, decomposed, with its guards."""
    template = lesson.explained.template
    frame = MainFrame(module, lesson, declared, emitter.emit if emitter is not None else None)
    with kept(module):
        frame.emit(template.items)
    learned = Learned(frame.scope.graph, module, frame.constants)
    found: list[Region] = []
    for sizes in _examples(declared, [trace.sizes for trace in template.traces]):
        with kept(module):
            program, decomposed = export_graph(learned, open_values(declared, sizes), open_axes(declared), decompose)
        symbols = symbols_of(program, declared_sizes(declared))
        environment = shape_environment(decomposed) or shape_environment(program)
        guards = collect_guards(environment, symbols, declared.domain) if environment is not None else ()
        found.append(Region(decomposed, symbols, guards, dict(sizes)))
        outputs = outputs_of(program, template.traces[0].output_paths, symbols, declared.domain)
        if is_settled(found):
            break
    region = min(found, key=lambda region: len(_refuted(region)))
    inside = tuple(emitter.guards) if emitter is not None else ()
    loops = emitter.loops_of(frame) if emitter is not None else {}
    region = replace(region, guards=(*region.guards, *inside, note_of(lesson)), loops=dict(loops))
    return Captured(strategy, (region,), outputs)


def is_settled(found: Sequence[Region]) -> bool:
    """Whether the last of these exports of one program has only proved conditions, or the same others as the one before.

    An export at further sizes would show those again: they do not come from its sizes.
    """
    refuted = [_refuted(region) for region in found[-2:]]
    return not refuted[-1] or (len(refuted) > 1 and refuted[0] == refuted[1])


def _refuted(region: Region) -> list[Condition | str]:
    return [guard.condition or guard.text for guard in region.guards if guard.status != "proved"]


def _examples(declared: Declared, traced: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Traced sizes to export at, the least special first: a size that divides evenly brings conditions of its own."""
    return sorted(traced, key=lambda sizes: _specialty(declared, sizes))[:_EXPORTS]


def _specialty(declared: Declared, sizes: Mapping[str, int]) -> tuple[int, int]:
    divisors = sum(1 for size in sizes.values() for divisor in (2, 3, 4, 5, 7, 8) if size % divisor == 0)
    return 10 * accidents(declared, sizes) + divisors, sum(sizes.values())


def note_of(lesson: Lesson) -> Guard:
    """What the program rests on beside its guards: rules that were fitted, not proved."""
    text = f"fitted from {lesson.traces} traces, predicted {lesson.predicted} unseen ones"
    return Guard(None, text, None, False, "unknown")


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

    `answers`: whether the module answers at given sizes in eager mode. Where the module does other things at other
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
