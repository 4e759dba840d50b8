"""Shapes of what loops give, as expressions: of carried values, and of what is collected."""

from __future__ import annotations

from typing import Any

import torch

from anyshape.capture.generalized.arguments import Explained, walk
from anyshape.capture.generalized.lists import Listed, Run
from anyshape.capture.generalized.refusals import edge_without_rule, number_without_rule
from anyshape.capture.generalized.template import Place, Repeated
from anyshape.capture.rerolled.demands import Demand, One
from anyshape.capture.rerolled.observed import Observed, observe
from anyshape.domain import Expr, Number, dims_of, simplify


def fitted_shape(explained: Explained, observed: Observed) -> tuple[Expr, ...]:
    """An observed shape as expressions. Raises CaptureRefused where an axis follows no rule."""
    sizes = []
    for axis in range(len(observed.shapes[0][1])):
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
        raise edge_without_rule(next(item.step for item in walk(loop.body) if isinstance(item, Place)))
    return shape


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
