"""What a step of the template takes: a value of the same scope, one carried from the repetition before, one of many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.capture.generalized.template import Place, Repeated, Seen
from anyshape.capture.generalized.trace import Constant, Weight
from anyshape.domain import Expr


@dataclass(frozen=True)
class Value:
    """What a place of this scope, or of a scope around it, gives."""

    place: Place
    output: int | None


@dataclass(frozen=True)
class InputOperand:
    """An open leaf of the inputs."""

    position: int


@dataclass(frozen=True)
class WeightOperand:
    """A tensor of the module."""

    weight: Weight


@dataclass(frozen=True)
class ConstantOperand:
    """A tensor made from Python values: what it was at each point."""

    sightings: tuple[tuple[Seen, Constant], ...] = field(compare=False)
    key: int = 0


@dataclass(eq=False)
class Slot:
    """A value that a loop carries: what it is before the first repetition, and what the next one gets."""

    loop: Repeated
    initial: Operand
    following: Operand
    shapes: list[tuple[Seen, tuple[int, ...]]]
    dtype: torch.dtype


@dataclass(frozen=True)
class Carried:
    """A slot as the body sees it."""

    slot: Slot


@dataclass(frozen=True)
class Final:
    """A slot after its loop."""

    slot: Slot


@dataclass(frozen=True)
class Element:
    """What a finished loop's body gave in one of its repetitions."""

    loop: Repeated
    inner: Operand
    index: Expr


@dataclass(frozen=True)
class Collected:
    """What a finished loop's body gave in all of its repetitions, one after the other along a new first axis.

    `inner` is an operand of the body, or a list of its operands that the body joins (`joined`: along which axis, and
    whether by stack). Where repetitions give different sizes, `grown` is True: they are joined to one another as well.
    """

    loop: Repeated
    inner: Any
    joined: tuple[int, bool] | None = None
    grown: bool = False


Operand = Value | InputOperand | WeightOperand | ConstantOperand | Carried | Final | Element | Collected
