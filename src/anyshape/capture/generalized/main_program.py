"""What was learned -> the main program: sizes read from the inputs, weights from the module, and then `Captured`."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.frames import EmitLoop, Frame, held_name
from anyshape.capture.generalized.learn import Lesson
from anyshape.capture.generalized.operands import Given, Held, Operand
from anyshape.capture.generalized.program import Decompose, Learned, export_graph
from anyshape.capture.generalized.refusals import dim_unreadable
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.solve_dims import read_dims
from anyshape.capture.guards import collect_guards, shape_environment
from anyshape.capture.generalized.described import answers_of, declared_sizes, open_axes, symbols_of
from anyshape.capture.generalized.record import open_values
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard, Region


class MainFrame(Frame):
    """The frame of the whole program: its inputs are the open leaves."""

    def __init__(self, lesson: Lesson, declared: Declared, emit_loop: EmitLoop | None) -> None:
        super().__init__(lesson.explained, declared.domain, (), emit_loop)
        self._inputs = [self.scope.graph.placeholder(f"leaf_{position}") for position, _ in enumerate(declared.open_leaves)]
        self._readings = read_dims(declared)
        self._names: dict[str, Node] = {}

    def read(self, scope: Scope, name: str) -> Size:
        if name not in self._readings:
            raise dim_unreadable(name)
        reading = self._readings[name]
        size: Size = self._inputs[reading.position]
        if reading.axis is not None:
            size = scope.call(torch.ops.aten.sym_size.int, size, reading.axis)
        rest = scope.size(reading.rest)
        if rest != 0:
            size = scope.call(operator.sub, size, rest)
        return size if reading.factor == 1 else scope.call(operator.floordiv, size, reading.factor)

    def outer(self, operand: Operand) -> Node:
        if isinstance(operand, Given):
            return self._inputs[operand.position]
        assert isinstance(operand, Held), operand
        return self._held(operand)

    def _held(self, operand: Held) -> Node:
        name = held_name(operand)
        if not _is_attribute(self.explained_module, name):
            return self.constant(f"held_{len(self.constants)}", operand.weight.tensor)
        return self.scope.graph.get_attr(name)

    explained_module: torch.nn.Module

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


def build_main(module: torch.nn.Module, declared: Declared, lesson: Lesson, emit_loop: EmitLoop | None = None) -> Learned:
    """The main program as a module."""
    frame = MainFrame(lesson, declared, emit_loop)
    frame.explained_module = module
    frame.emit(lesson.explained.template.items)
    return Learned(frame.scope.graph, module, frame.constants)


def build_captured(
    strategy: str, module: torch.nn.Module, declared: Declared, lesson: Lesson, decompose: Decompose
) -> Captured:
    """The program exported at the sizes of the first trace, decomposed, with its guards."""
    from anyshape.modules.state import kept

    learned = build_main(module, declared, lesson)
    sizes = lesson.explained.template.traces[0].sizes
    values = open_values(declared, sizes)
    with kept(module):
        program, decomposed = export_graph(learned, values, open_axes(declared), decompose)
    symbols = symbols_of(program, declared_sizes(declared))
    environment = shape_environment(decomposed) or shape_environment(program)
    guards = collect_guards(environment, symbols, declared.domain) if environment is not None else ()
    paths = lesson.explained.template.traces[0].output_paths
    region = Region(decomposed, symbols, (*guards, note_of(lesson)), dict(sizes))
    return Captured(strategy, (region,), answers_of(program, paths, symbols))


def note_of(lesson: Lesson) -> Guard:
    """What the program rests on beside its guards: rules that were fitted, not proved."""
    text = f"fitted from {lesson.traces} traces, predicted {lesson.predicted} unseen ones"
    return Guard(None, text, None, False, "unknown")


__all__ = ["MainFrame", "build_captured", "build_main", "note_of"]
