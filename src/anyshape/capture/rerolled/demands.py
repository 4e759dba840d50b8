"""Values of loops that the rest of a program needs, of single repetitions or runs of many: their shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.capture.generalized.explained_arguments import Explained, Listed, Run, single_of
from anyshape.capture.generalized.not_learned import edge_without_rule, number_without_rule
from anyshape.capture.generalized.template import (
    Carried,
    Collected,
    ConstantOperand,
    Element,
    Final,
    InputOperand,
    Operand,
    Place,
    Repeated,
    Seen,
    Template,
    Value,
    WeightOperand,
    first_step,
)
from anyshape.domain import Expr, Number, dims_of, simplify

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Observed:
    """Shapes of a value, each at its own point."""

    shapes: tuple[tuple[Seen, Shape], ...]
    dtype: torch.dtype

    def at(self, seen: Seen) -> Shape:
        """The shape in this trace, in the repetitions of the loops that the value stands in."""
        found = self.find(seen)
        assert found is not None, "a value that this trace does not have"
        return found

    def find(self, seen: Seen) -> Shape | None:
        """The shape of the value in this trace; None where the trace does not have the value."""
        for other, shape in self.shapes:
            if other.trace == seen.trace and seen.counters[: len(other.counters)] == other.counters:
                return shape
        return next((shape for other, shape in self.shapes if other.trace == seen.trace), None)


def observe(template: Template, operand: Operand) -> Observed:
    """Every shape that the traces show of an operand."""
    if isinstance(operand, Value):
        output = operand.output or 0
        shapes = [(each.seen, each.step.shapes[output] or ()) for each in operand.place.occurrences]
        return Observed(tuple(shapes), operand.place.step.dtypes[output] or torch.float32)
    if isinstance(operand, InputOperand):
        trace = template.traces[0]
        return Observed(
            _everywhere(template, [each.input_shapes[operand.position] for each in template.traces]),
            trace.input_dtypes[operand.position],
        )
    if isinstance(operand, WeightOperand):
        tensor = operand.weight.tensor
        return Observed(_everywhere(template, [tuple(tensor.shape)] * len(template.traces)), tensor.dtype)
    if isinstance(operand, ConstantOperand):
        tensors = [(seen, constant.tensor) for seen, constant in operand.sightings]
        return Observed(tuple((seen, tuple(tensor.shape)) for seen, tensor in tensors), tensors[0][1].dtype)
    if isinstance(operand, Carried):
        return Observed(tuple(operand.slot.shapes), operand.slot.dtype)
    if isinstance(operand, Final):
        return _final(template, operand)
    if isinstance(operand, Collected):
        return _collected(template, operand)
    assert isinstance(operand, Element)
    inner = observe(template, operand.inner)
    level = len(operand.loop.loops)
    return Observed(tuple((_outside(template, seen, level), shape) for seen, shape in inner.shapes), inner.dtype)


def _final(template: Template, operand: Final) -> Observed:
    """After the last repetition; what went in where there was none."""
    slot = operand.slot
    initial = observe(template, slot.initial)
    following = observe(template, slot.following)
    level = len(slot.loop.loops)
    shapes = []
    for outer, trips in slot.loop.trips:
        last = Seen(outer.trace, (*outer.counters[:level], trips - 1), outer.point)
        # What is carried over two repetitions is seen only where there were two.
        shape = following.find(last) if trips else initial.find(outer)
        shapes += [(outer, shape)] if shape is not None else []
    return Observed(tuple(shapes), slot.dtype)


def _collected(template: Template, operand: Collected) -> Observed:
    """All repetitions along a new first axis; lists that the body joined have their own axis among the others."""
    inner, axis, is_stack = operand.inner, *(operand.joined or (0, False))
    parts = [inner] if operand.joined is None else list(inner.parts)
    observed = [observe(template, part) for part in parts]
    level = len(operand.loop.loops)
    shapes = []
    for outer, trips in operand.loop.trips:
        if not trips:
            continue
        each = [one.at(Seen(outer.trace, (*outer.counters[:level], 0), outer.point)) for one in observed]
        if operand.joined is not None and is_stack:
            each = [(*shape[:axis], 1, *shape[axis:]) for shape in each]
        joined = list(each[0])
        if operand.joined is not None:
            joined[axis] = sum(shape[axis] for shape in each)
        shapes.append((outer, (trips, *joined)))
    return Observed(tuple(shapes), observed[0].dtype)


def _outside(template: Template, seen: Seen, level: int) -> Seen:
    names = set(template.traces[seen.trace].sizes)
    counters = [name for name in seen.point if name not in names][: level * (2 if template.powers else 1)]
    point = {name: value for name, value in seen.point.items() if name in names or name in counters}
    return Seen(seen.trace, seen.counters[:level], point)


def _everywhere(template: Template, shapes: Sequence[Shape]) -> tuple[tuple[Seen, Shape], ...]:
    return tuple(
        (Seen(index, (), dict(trace.sizes)), shape)
        for index, (trace, shape) in enumerate(zip(template.traces, shapes, strict=True))
    )


@dataclass(frozen=True)
class One:
    """What the body gives in each repetition, collected."""

    inner: Operand


@dataclass(frozen=True)
class Many:
    """A list of the body's, joined there along an axis, then collected; or grown, where its sizes differ."""

    content: Listed
    axis: int
    is_stack: bool
    is_grown: bool = False


Demand = One | Many


@dataclass
class Demands:
    """For each loop, what has to be collected, each once and in order."""

    by_loop: dict[Repeated, dict[Demand, None]] = field(default_factory=dict)

    def add(self, loop: Repeated, demand: Demand) -> None:
        self.by_loop.setdefault(loop, {})[demand] = None


def find_demands(explained: Explained) -> Demands:
    """Everything that is asked of finished loops."""
    demands = Demands()
    for place, arguments in explained.arguments.items():
        for argument in arguments:
            if isinstance(argument, Listed):
                _from_list(demands, argument, *_joining(place))
            else:
                _from_operand(demands, argument)
    for slots in explained.resolver.slots.values():
        for slot in slots:
            _from_operand(demands, slot.initial)
            _from_operand(demands, slot.following)
    return demands


def _joining(place: Place) -> tuple[int, bool]:
    """Along which axis stack or cat joins, and whether it is stack."""
    rank = len(place.step.shapes[0] or ())
    axis = place.step.leaves[1] if len(place.step.leaves) > 1 else 0
    return int(axis) % rank, place.step.target is torch.ops.aten.stack.default


def _from_list(demands: Demands, listed: Listed, axis: int, is_stack: bool) -> None:
    for part in listed.parts:
        if isinstance(part, Run):
            single = single_of(part.content) if is_stack else None
            many = Many(part.content, axis, is_stack, is_grown=not part.is_even and not is_stack)
            demands.add(part.loop, many if single is None else One(single))
            _from_list(demands, part.content, axis, is_stack)
        else:
            _from_operand(demands, part)


def _from_operand(demands: Demands, operand: Any) -> None:
    for each in _elements(operand):
        demands.add(each.loop, One(each.inner))


def _elements(operand: Any) -> Iterator[Element]:
    if isinstance(operand, Element):
        yield operand
        yield from _elements(operand.inner)


def fitted_shape(explained: Explained, observed: Observed, skip: int | None = None) -> tuple[Any, ...]:
    """An observed shape as expressions, None for the skipped axis. Raises NotCaptured where one follows no rule."""
    sizes: list[Expr | None] = []
    for axis in range(len(observed.shapes[0][1])):
        if axis == skip:
            sizes.append(None)
            continue
        seen = [(point.point, shape[axis]) for point, shape in observed.shapes]
        expr = explained.fits.integers(seen)
        if expr is None:
            raise number_without_rule(next(iter(explained.arguments)).step, seen)
        sizes.append(expr)
    return tuple(sizes)


def demanded_shape(explained: Explained, demand: Demand, loop: Repeated) -> tuple[Expr, ...]:
    """The shape of one repetition's share. Raises NotCaptured where repetitions differ in it."""
    if isinstance(demand, One):
        shape = fitted_shape(explained, observe(explained.template, demand.inner))
    else:
        shape = joined_shape(explained, demand.content, demand.axis, demand.is_stack)
    if any(loop.counter in dims_of(size) for size in shape):
        raise edge_without_rule(first_step(loop))
    return shape


def grown_shape(explained: Explained, demand: Many, loop: Repeated) -> tuple[Any, ...]:
    """The shape of all repetitions joined along the axis, where its size is None if values decide it."""
    observed = [observe(explained.template, part) for part in demand.content.parts if not isinstance(part, Run)]
    sizes = list(fitted_shape(explained, observed[0], skip=demand.axis))
    if any(shape[demand.axis] is None for each in observed for _, shape in each.shapes):
        return tuple(sizes)
    totals = []
    for outer, trips in loop.trips:
        inside = [Seen(outer.trace, (*outer.counters, count), outer.point) for count in range(trips)]
        totals.append((outer.point, sum(each.at(seen)[demand.axis] for seen in inside for each in observed)))
    total = explained.fits.integers(totals)
    if total is None:
        raise number_without_rule(first_step(loop), totals)
    sizes[demand.axis] = total
    return tuple(sizes)


def joined_shape(explained: Explained, listed: Listed, axis: int, is_stack: bool) -> tuple[Expr, ...]:
    """The shape of stack or cat of a list."""
    total: Expr = Number(0)
    rest: tuple[Expr, ...] = ()
    for part in listed.parts:
        if isinstance(part, Run):
            rest = joined_shape(explained, part.content, axis, is_stack)
            total = total + rest[axis] * part.count
            continue
        rest = fitted_shape(explained, observe(explained.template, part))
        if is_stack:
            rest = (*rest[:axis], Number(1), *rest[axis:])
        total = total + rest[axis]
    return (*rest[:axis], simplify(total), *rest[axis + 1 :])


def demanded_dtype(explained: Explained, demand: Demand) -> torch.dtype:
    """The dtype of what is collected."""
    found: Any = demand.inner if isinstance(demand, One) else demand.content
    while isinstance(found, (Listed, Run)):
        found = found.parts[0] if isinstance(found, Listed) else found.content
    return observe(explained.template, found).dtype
