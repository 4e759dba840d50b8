"""What the rest of a program asks of its loops (values of single repetitions, runs of many), and the shapes of those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.capture.generalized.explained_arguments import Explained
from anyshape.capture.generalized.lists import Listed, Run, single_of
from anyshape.capture.generalized.not_learned import edge_without_rule, number_without_rule
from anyshape.capture.generalized.operands import Element, Operand
from anyshape.capture.generalized.template import Place, Repeated, Seen, first_step
from anyshape.capture.rerolled.observed import Observed, observe
from anyshape.domain import Expr, Number, dims_of, simplify


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
    """An observed shape as expressions, None for the skipped axis. Raises CaptureRefused where one follows no rule."""
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
    """The shape of one repetition's share. Raises CaptureRefused where repetitions differ in it."""
    if isinstance(demand, One):
        shape = fitted_shape(explained, observe(explained.template, demand.inner))
    else:
        shape = joined_shape(explained, demand.content, demand.axis, demand.is_stack)
    if any(loop.counter in dims_of(size) for size in shape):
        raise edge_without_rule(first_step(loop))
    return shape


def grown_shape(explained: Explained, demand: Many, loop: Repeated) -> tuple[Any, ...]:
    """The shape of all repetitions joined along the axis."""
    observed = [observe(explained.template, part) for part in demand.content.parts if not isinstance(part, Run)]
    sizes = list(fitted_shape(explained, observed[0], skip=demand.axis))
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
