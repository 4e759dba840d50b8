"""What a value was seen to be: its shapes at all points, and its dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from anyshape.capture.generalized.operands import (
    Carried,
    Collected,
    ConstantOperand,
    Element,
    Final,
    InputOperand,
    Operand,
    Value,
    WeightOperand,
)
from anyshape.capture.generalized.template import Seen, Template

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
        """The same; None where the trace does not have the value."""
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
