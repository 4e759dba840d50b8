"""The rung that learns one program from concrete traces: every number that differs becomes an expression of the dims.

This file: the generalized rung: concrete traces of one structure -> one exported program whose numbers are expressions of
the dims.

torch.export traces a module that holds the user's module and runs the learned graph by an interpreter: weights keep their
names, and every node keeps the user's line. Each dim is computed from an axis, or from a Python int, of the inputs.

Files, in the order in which data flows:

    trace                the record of one run: steps that refer to one another
    record               the module at given sizes -> a trace
    values_in_traces     values that Python reads from tensors in a trace
    called_operators     the graph of the operators that one call makes, by kernels that compute shapes only
    template             traces of one structure -> one template; what its steps take
    explained_arguments  every argument of the template, explained, lists of tensors among them
    resolver             where each argument comes from
    fit_forms            the forms of integers that are tried
    fit_integers         integers seen at many sizes -> an expression
    fit_reals            floats seen at many sizes -> an expression
    python_constants     tensors made from Python values -> arange, full, tril, ...
    template_fits        all fits of one template
    learn                trace, explain, predict, until the rules hold on unseen traces
    traced_regions       other sizes take another path -> the condition between them
    scope                a graph under construction: arithmetic on sizes
    graph_frames         places -> nodes of the graph
    not_learned          why it could not be learned: findings
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Interpreter, Node, traceback

from anyshape.capture.generalized.graph_frames import EmitLoop, Frame, held_name
from anyshape.capture.generalized.learn import Answers, LearnedProgram, Learner, Plan, accidents
from anyshape.capture.generalized.not_learned import dim_unreadable
from anyshape.capture.generalized.record import Recorder, TraceKey, open_values
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.template import InputOperand, Operand, Repeated, Template, WeightOperand, lay_over
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import Paths, capture_sides, find_split, split_by_paths
from anyshape.capture.guards import collect_guards, shape_environment, user_lines
from anyshape.capture.sympy_terms import outputs_of
from anyshape.capture.torch_export import Decompose, declared_sizes, open_axes, symbolic_sizes, symbols_of
from anyshape.domain import Condition, Number, Op, Sizes, Undefined, holds
from anyshape.graphs import Place, readings_of
from anyshape.inputs import Declared
from anyshape.modules.state import kept
from anyshape.records.captured import Captured, Guard, Loop, Region

__all__ = ["capture_generalized"]
_EXPORTS = 3
_DEEPEST = 3
_MOST_SUSPECTS = 64


class LearnedModule(torch.nn.Module):
    """A module whose forward is a graph; `module` is the user's, `constants` are the tensors that the graph reads."""

    def __init__(self, graph: Graph, module: torch.nn.Module | None, constants: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        if module is not None:
            self.module = module
        for name, tensor in constants.items():
            self.register_buffer(name, tensor.detach(), persistent=False)
        object.__setattr__(self, "_learned", graph)

    def forward(self, *leaves: Any) -> Any:
        graph: Graph = self.__dict__["_learned"]
        with traceback.preserve_node_meta():
            return Interpreter(self, garbage_collect_values=False, graph=graph).run(*leaves)


def export_graph(
    learned: LearnedModule, inputs: Sequence[Any], dynamic: Sequence[Any], decompose: Decompose
) -> tuple[ExportedProgram, ExportedProgram]:
    """The program as captured and as decomposed. Raises what torch.export raises."""
    with symbolic_sizes(), user_lines(), torch.no_grad():
        program = torch.export.export(learned, tuple(inputs), dynamic_shapes=(tuple(dynamic),), strict=False)
        return program, decompose(program)


def places_of_dims(declared: Declared) -> tuple[Place, ...]:
    """Every axis of every open leaf, and every number, that depends on dims; `input` is the position of the leaf."""
    longer = "_" * max(map(len, declared.domain.names), default=1)  # than any dim's name: keys are no dims
    return tuple(
        Place(str(position), axis, size, f"leaf_{position}_{axis}{longer}")
        for position, sizes in enumerate(declared_sizes(declared))
        for axis, size in enumerate(sizes)
        if size is not None and not isinstance(size, Number)
    )


class MainFrame(Frame):
    """The frame of the whole program: its inputs are the open leaves."""

    def __init__(
        self, module: torch.nn.Module, learned_program: LearnedProgram, declared: Declared, emit_loop: EmitLoop | None
    ) -> None:
        self._module = module
        super().__init__(learned_program.explained, declared.domain, (), emit_loop)
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
    learned_program: LearnedProgram,
    decompose: Decompose,
    emitter: Emitter | None = None,
) -> Captured:
    """The program exported at the sizes of a trace, decomposed, with its guards."""
    template = learned_program.explained.template
    frame = MainFrame(module, learned_program, declared, emitter.emit if emitter is not None else None)
    with kept(module):
        frame.emit(template.items)
    learned = LearnedModule(frame.scope.graph, module, frame.constants)
    found: list[Region] = []
    for sizes in _examples(declared, [trace.sizes for trace in template.traces]):
        if found and not _may_differ(found[-1], sizes):
            continue
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
    region = replace(region, guards=(*region.guards, *inside, note_of(learned_program)), loops=dict(loops))
    return Captured(strategy, (region,), outputs)


def is_settled(found: Sequence[Region]) -> bool:
    """Whether the last of these exports of one program has only proved conditions, or the same others as the one before.

    An export at further sizes would show those again: they do not come from its sizes.
    """
    refuted = [_refuted(region) for region in found[-2:]]
    return not refuted[-1] or (len(refuted) > 1 and refuted[0] == refuted[1])


def _may_differ(region: Region, sizes: Sizes) -> bool:
    """Whether an export at these sizes may meet other conditions: one that is not proved is false there, or not known."""
    try:
        return any(guard.condition is None or not holds(guard.condition, sizes) for guard in _unproved(region))
    except Undefined:  # a division by 0 at these sizes
        return True


def _refuted(region: Region) -> list[Condition | str]:
    return [guard.condition or guard.text for guard in _unproved(region)]


def _unproved(region: Region) -> list[Guard]:
    return [guard for guard in region.guards if guard.status != "proved"]


def _examples(declared: Declared, traced: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Traced sizes to export at, the least special first: a size that divides evenly brings conditions of its own."""
    return sorted(traced, key=lambda sizes: _specialty(declared, sizes))[:_EXPORTS]


def _specialty(declared: Declared, sizes: Mapping[str, int]) -> tuple[int, int]:
    divisors = sum(1 for size in sizes.values() for divisor in (2, 3, 4, 5, 7, 8) if size % divisor == 0)
    return 10 * accidents(declared, sizes) + divisors, sum(sizes.values())


def note_of(learned_program: LearnedProgram) -> Guard:
    """What the program rests on beside its guards: rules that were fitted, not proved."""
    text = f"fitted from {learned_program.traces} traces, predicted {learned_program.predicted} unseen ones"
    return Guard(None, text, None, False, "unknown")


def capture_generalized(
    module: torch.nn.Module,
    declared: Declared,
    answers: Answers,
    decompose: Decompose,
    suspects: Sequence[Sizes] = (),
    traces: dict[TraceKey, Trace] | None = None,
    find_paths: Callable[[], Paths] = dict,
) -> Captured:
    """Programs for the whole domain, learned from traces. Raises NotCaptured with the line that no rule explains.

    `answers`: whether the module answers at given sizes in eager mode. Where the module does other things at other
    sizes there are several regions, each with its condition. `suspects` are sizes at which it may, `find_paths` its known ways.
    """
    recorder = Recorder(module, declared, traces)
    plan = Plan(lay_over=_flat, also=suspects[:_MOST_SUSPECTS])

    def capture(declared: Declared) -> Captured:
        learned_program = Learner(recorder, declared, answers, plan).learn()
        return build_captured("generalized", recorder.module, declared, learned_program, decompose)

    def find_side(declared: Declared) -> Condition | None:
        by_paths = split_by_paths(find_paths(), declared.domain, declared.example_sizes)
        return by_paths or find_split(recorder, declared, answers, plan.largest, plan.also)

    return capture_sides(declared, capture, find_side, _DEEPEST)


def _flat(traces: Sequence[Trace]) -> Template:
    return lay_over(traces, [tuple(range(len(trace.steps))) for trace in traces], ())
