"""Loops of a template -> a node in the graph around, and the body as a program of its own.

A body takes a counter, sizes and tensors; carried and collected values come out.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch.export import Dim as TorchDim
from torch.fx import Node

from anyshape.capture.generalized import LearnedModule, export_graph
from anyshape.capture.generalized.explained_arguments import Explained, Run, gather
from anyshape.capture.generalized.graph_frames import EmitLoop, Frame
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.template import Carried, Collected, Final, Operand, Place, Repeated, Seen, Slot, walk
from anyshape.capture.guards import collect_guards, shape_environment
from anyshape.capture.rerolled.demands import (
    Demand,
    Many,
    Observed,
    One,
    demanded_dtype,
    demanded_shape,
    find_demands,
    fitted_shape,
    grown_shape,
    joined_shape,
    observe,
)
from anyshape.capture.torch_export import Decompose, symbols_of
from anyshape.domain import Compare, Dim, Domain, Expr, Number, Ref, is_about
from anyshape.leaves.own_operators import BY_VALUES
from anyshape.leaves.own_operators import loop as loop_operator
from anyshape.records.captured import Guard, Loop

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


class LoopEmitter:
    """Emits the loops of one template. Afterwards `loops` has the bodies, `guards` what they rest on."""

    def __init__(self, explained: Explained, domain: Domain, decompose: Decompose) -> None:
        self._explained = explained
        self._domain = domain
        self._decompose = decompose
        self._demands = find_demands(explained)
        self._inside: dict[Frame, dict[str, Loop]] = {}
        self.guards: list[Guard] = []

    def loops_of(self, frame: Frame) -> Mapping[str, Loop]:
        """The loops that stand in this frame."""
        return self._inside.get(frame, {})

    def emit(self, frame: Frame, loop: Repeated) -> None:
        """Build the body, export it, and put the loop's node and its results into the frame."""
        slots = self._explained.resolver.slots.get(loop, [])
        demands = sorted(self._demands.by_loop.get(loop, {}), key=lambda demand: not _is_grown(demand))
        body = BodyFrame(frame, loop, self.emit)
        body.emit(loop.body)
        body.finish(slots, demands)
        name = f"loop_{loop.counter}"
        self._inside.setdefault(frame, {})[name] = self._exported(
            body, slots, [demand for demand in demands if _is_grown(demand)]
        )
        self._place(frame, name, body, slots, demands)

    def _place(
        self, frame: Frame, name: str, body: BodyFrame, slots: Sequence[Slot], demands: Sequence[Demand]
    ) -> None:
        explained, scope = self._explained, frame.scope
        template = explained.template
        scope.stack = _first_place(body.loop).step.stack
        trips = explained.trips[body.loop]
        results = [(fitted_shape(explained, observe(template, Final(slot))), slot.dtype) for slot in slots]
        initial = [frame.tensor(slot.initial) for slot in slots]
        for demand in demands:
            dtype = demanded_dtype(explained, demand)
            if _is_grown(demand):
                shape, empty = grown_shape(explained, demand, body.loop), demand.axis
                sizes = [0 if axis == empty else scope.size(size) for axis, size in enumerate(shape)]
                initial.append(scope.call(torch.ops.aten.zeros.default, sizes, dtype=dtype))
                results.append((shape, dtype))
            else:
                results.append(((trips, *demanded_shape(explained, demand, body.loop)), dtype))
        node = scope.call(
            loop_operator,
            name,
            scope.size(trips),
            initial,
            [each.outside for each in body.inputs if each.kind in ("tensor", "constant")],
            [each.outside for each in body.inputs if each.kind == "number"],
            [BY_VALUES if size is None else scope.size(size) for shape, _ in results for size in shape],
            [len(shape) for shape, _ in results],
            [str(dtype).removeprefix("torch.") for _, dtype in results],
        )
        keys: list[Any] = [Final(slot) for slot in slots]
        keys += [
            Collected(body.loop, each.inner)
            if isinstance(each, One)
            else Collected(body.loop, each.content, (each.axis, each.is_stack), each.is_grown)
            for each in demands
        ]
        for index, key in enumerate(keys):
            frame.values[key] = scope.call(_item, node, index)

    def _exported(self, body: BodyFrame, slots: Sequence[Slot], grown: Sequence[Demand]) -> Loop:
        seen = _example(body.loop)
        described = [self._describe(each, seen) for each in body.inputs]
        learned = LearnedModule(body.scope.graph, None, {})
        inputs = [value for value, _ in described]
        dynamic = [
            TorchDim.AUTO
            if isinstance(value, int)
            else {axis: TorchDim.AUTO for axis, size in enumerate(sizes) if not isinstance(size, Number)}
            for value, sizes in described
        ]
        program, decomposed = export_graph(learned, inputs, dynamic, self._decompose)
        symbols = symbols_of(program, [sizes for _, sizes in described])
        environment = shape_environment(decomposed) or shape_environment(program)
        if environment is not None:
            self._keep_guards(collect_guards(environment, symbols, self._widened(body.loops)))
        return Loop(
            decomposed, symbols, _roles(body.inputs, slots, grown), len(slots) + len(grown), dict(self.loops_of(body))
        )

    def _describe(self, each: BodyInput, seen: Seen) -> tuple[Any, tuple[Expr | None, ...]]:
        """An example of an input, and the expressions of its sizes."""
        if each.kind in ("counter", "number"):
            return seen.point[each.what], (Ref(each.what),)
        if each.kind == "constant":
            return each.what.detach(), tuple(Number(size) for size in each.what.shape)
        if each.kind == "grown":
            return self._grown(each.what, seen)
        operand = Carried(each.what) if each.kind == "carried" else each.what
        observed: Observed = observe(self._explained.template, operand)
        sizes = tuple(
            self._explained.fits.integers([(point.point, shape[axis]) for point, shape in observed.shapes])
            for axis in range(len(observed.shapes[0][1]))
        )
        return torch.zeros(observed.at(seen), dtype=observed.dtype), sizes

    def _grown(self, demand: Many, seen: Seen) -> tuple[Any, tuple[Expr | None, ...]]:
        """What was joined so far: of any size along the axis."""
        observed = observe(self._explained.template, demand.content.parts[0])  # type: ignore[arg-type]
        sizes = list(fitted_shape(self._explained, observed, skip=demand.axis))
        shape = list(observed.at(seen))
        shape[demand.axis] = (shape[demand.axis] or 0) + 3
        return torch.zeros(shape, dtype=observed.dtype), tuple(sizes)

    def _widened(self, loops: Sequence[Repeated]) -> Domain:
        """The domain with the counters of these loops, each below its number of trips."""
        counters = tuple(Dim(name, min=0) for loop in loops for name in (loop.counter, loop.power))
        below = tuple(Compare("<", Ref(loop.counter), self._explained.trips[loop]) for loop in loops)
        return Domain((*self._domain.dims, *counters), (*self._domain.relations, *below))

    def _keep_guards(self, guards: Sequence[Guard]) -> None:
        """What is not proved of a body; counters are no dims, so a condition with one is kept as text."""
        names = set(self._domain.names)
        for guard in guards:
            if guard.status == "proved":
                continue
            about_dims = guard.condition is not None and is_about(guard.condition, names)
            text = guard.text if about_dims else f"in a loop: {guard.condition or guard.text}"
            kept = guard.condition if about_dims else None
            self.guards.append(
                Guard(
                    kept,
                    text,
                    guard.source,
                    False,
                    guard.status if about_dims else "unknown",
                    guard.counterexample if about_dims else None,
                )
            )


def _is_grown(demand: Demand) -> TypeGuard[Many]:
    return isinstance(demand, Many) and demand.is_grown


def _roles(inputs: Sequence[BodyInput], slots: Sequence[Slot], grown: Sequence[Demand]) -> tuple[tuple[str, int], ...]:
    roles: list[tuple[str, int]] = []
    counts = {"tensor": 0, "number": 0}
    for each in inputs:
        if each.kind == "counter":
            roles.append(("counter", 0))
        elif each.kind == "carried":
            roles.append(("carried", list(slots).index(each.what)))
        elif each.kind == "grown":
            roles.append(("carried", len(slots) + list(grown).index(each.what)))
        else:
            kind = "number" if each.kind == "number" else "tensor"
            roles.append((kind, counts[kind]))
            counts[kind] += 1
    return tuple(roles)


def _first_place(loop: Repeated) -> Place:
    return next(item for item in walk(loop.body) if isinstance(item, Place))


def _example(loop: Repeated) -> Seen:
    """The most general repetition: neither the first nor the last, in the longest trace."""
    occurrences = [occurrence.seen for occurrence in _first_place(loop).occurrences]
    longest = max(count for _, count in loop.trips)
    wanted = max(longest // 2, min(longest - 1, 1))
    inside = [seen for seen in occurrences if seen.counters[-1] == wanted]
    return max(inside, key=lambda seen: (min(seen.point.values()), sum(seen.point.values())))


def _item(values: Any, index: int) -> Any:
    return values[index]
