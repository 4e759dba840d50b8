"""What the rest of a program asks of its loops: values of single repetitions, and runs of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.capture.generalized.explained_arguments import Explained
from anyshape.capture.generalized.gather import single_of
from anyshape.capture.generalized.lists import Listed, Run
from anyshape.capture.generalized.operands import Element, Operand
from anyshape.capture.generalized.template import Place, Repeated


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
