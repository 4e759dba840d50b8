"""A loop's body as a graph of its own: counter, sizes and tensors in, carried and collected values out."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.graph_frames import EmitLoop, Frame
from anyshape.capture.generalized.lists import Run, gather
from anyshape.capture.generalized.operands import Carried, Operand, Slot
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.template import Repeated
from anyshape.capture.rerolled.demands import Demand, Many, One, joined_shape

_aten = torch.ops.aten


@dataclass(frozen=True)
class BodyInput:
    """One input of a body: its kind, and what it is: a name, a slot, an operand, or a constant's name and tensor."""

    kind: str
    what: Any
    outside: Any = None


class BodyFrame(Frame):
    """The frame of a loop's body. What it takes from around becomes an input, in the order in which it was asked for."""

    def __init__(self, around: Frame, loop: Repeated, emit_loop: EmitLoop) -> None:
        super().__init__(around.explained, around.scope.domain, (*around.loops, loop), emit_loop)
        self.around = around
        self.loop = loop
        self.inputs: list[BodyInput] = []
        self._last: Node | None = None
        self._counter = self._input(BodyInput("counter", loop.counter))

    def _input(self, described: BodyInput) -> Node:
        """A new placeholder, behind the others and before everything else."""
        graph = self.scope.graph
        name = f"input_{len(self.inputs)}"
        if self._last is None:
            node = graph.placeholder(name)
        else:
            with graph.inserting_after(self._last):
                node = graph.placeholder(name)
        self.inputs.append(described)
        self._last = node
        return node

    def read(self, scope: Scope, name: str) -> Size:
        if name == self.loop.counter:
            return self._counter
        if name == self.loop.power:
            return scope.call(operator.pow, 2, self._counter)
        from anyshape.domain import Ref

        return self._input(BodyInput("number", name, self.around.scope.size(Ref(name))))

    def outer(self, operand: Operand) -> Node:
        if isinstance(operand, Carried) and operand.slot.loop is self.loop:
            return self._input(BodyInput("carried", operand.slot))
        return self._input(BodyInput("tensor", operand, self.around.tensor(operand)))

    def constant(self, name: str, tensor: torch.Tensor) -> Node:
        return self._input(BodyInput("constant", tensor, self.around.constant(name, tensor)))

    def finish(self, slots: Sequence[Slot], demands: Sequence[Demand]) -> None:
        """The graph's output: what every slot gets next, then what is collected."""
        results = [self.tensor(slot.following) for slot in slots]
        results += [self._collected(demand) for demand in demands]
        self.scope.graph.output(tuple(results))

    def _collected(self, demand: Demand) -> Node:
        if isinstance(demand, One):
            return self.tensor(demand.inner)
        assert isinstance(demand, Many)
        target = _aten.stack.default if demand.is_stack else _aten.cat.default
        if demand.is_grown:
            before = self._input(BodyInput("grown", demand))
            parts = [self.tensor(part) for part in demand.content.parts if not isinstance(part, Run)]
            return self.scope.call(_aten.cat.default, [before, *parts], demand.axis)
        rank = len(joined_shape(self.explained, demand.content, demand.axis, demand.is_stack))
        return gather(self, target, demand.content, [demand.axis], rank)
