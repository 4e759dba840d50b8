"""Shapes of what loops give, as expressions: of carried values, and of what is collected."""

from __future__ import annotations

from typing import Any

import torch

from anyshape.capture.generalized.explained_arguments import Explained
from anyshape.capture.generalized.lists import Listed, Run
from anyshape.capture.generalized.not_learned import edge_without_rule, number_without_rule
from anyshape.capture.generalized.template import Place, Repeated, Seen, walk
from anyshape.capture.generalized.trace import Step
from anyshape.capture.rerolled.demands import Demand, Many, One
from anyshape.capture.rerolled.observed import Observed, observe
from anyshape.domain import Expr, Number, dims_of, simplify


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
        raise edge_without_rule(_first_step(loop))
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
        raise number_without_rule(_first_step(loop), totals)
    sizes[demand.axis] = total
    return tuple(sizes)


def _first_step(loop: Repeated) -> Step:
    return next(item.step for item in walk(loop.body) if isinstance(item, Place))


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
