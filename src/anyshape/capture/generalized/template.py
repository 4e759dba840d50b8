"""Align traces into one template: every place in it has its values at all traced sizes, and operands that it takes.

A place is a step of the template with the counters of the loops around it; without loops there is one point for each
trace. Where the traces do not fit together, `Unaligned` names which steps differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.capture.generalized.trace import Constant, Step, Trace, Weight
from anyshape.domain import Expr

_LARGEST_POWER = 62  # of two, in 64 bits: a size that has doubled so often is none


@dataclass(frozen=True)
class Rolled:
    """A repeated block of one trace: for each repetition its own content."""

    repetitions: tuple[tuple[Any, ...], ...]


Tree = tuple[int | Rolled, ...]


@dataclass(frozen=True)
class Seen:
    """One occurrence of a place: which trace, at which counters, and the point that a fit may use."""

    trace: int
    counters: tuple[int, ...]
    point: Mapping[str, int]


@dataclass(frozen=True)
class Occurrence:
    """A step of a trace at a place of the template."""

    seen: Seen
    step: Step


@dataclass(eq=False)
class Place:
    """One step of the template."""

    number: int
    loops: tuple[Repeated, ...]
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def step(self) -> Step:
        return self.occurrences[0].step


@dataclass(eq=False)
class Repeated:
    """A loop of the template: what stands in its body, and how often it ran at each point of its surroundings."""

    counter: str
    loops: tuple[Repeated, ...]
    body: list[Place | Repeated] = field(default_factory=list)
    trips: list[tuple[Seen, int]] = field(default_factory=list)

    @property
    def power(self) -> str:
        """The name of 2 ** counter, where the template has it: for steps that double."""
        return f"{self.counter}_pow2"

    def point(self, count: int, powers: bool) -> dict[str, int]:
        """What this loop adds to a point in one of its repetitions."""
        power = 2 ** min(count, _LARGEST_POWER)
        return {self.counter: count, self.power: power} if powers else {self.counter: count}

    def trips_at(self, trace: int, counters: tuple[int, ...]) -> int:
        """How often it ran in this trace inside these repetitions of the loops around it."""
        return self._by_key[trace, counters]

    @property
    def _by_key(self) -> dict[tuple[int, tuple[int, ...]], int]:
        return {(seen.trace, seen.counters): count for seen, count in self.trips}


Item = Place | Repeated


def walk(items: Iterable[Item]) -> Iterator[Item]:
    """Places and loops in order, a loop before its body."""
    for item in items:
        yield item
        if isinstance(item, Repeated):
            yield from walk(item.body)


def first_step(loop: Repeated) -> Step:
    """The first step of a loop's body."""
    return next(item.step for item in walk(loop.body) if isinstance(item, Place))


@dataclass(frozen=True)
class Address:
    """Where a step of a trace stands in the template."""

    place: Place
    counters: tuple[int, ...]


class Unaligned(Exception):
    """Two traces do different things: the first steps that differ, None where a trace has ended."""

    def __init__(self, first: Step | None, second: Step | None) -> None:
        super().__init__("the traces differ")
        self.first = first
        self.second = second


@dataclass(frozen=True)
class Template:
    """All traces as one. `addresses[trace][step]` is the place of each step of each trace."""

    traces: tuple[Trace, ...]
    items: tuple[Item, ...]
    addresses: tuple[dict[int, Address], ...]
    powers: bool = False


def lay_over(
    traces: Sequence[Trace], trees: Sequence[Tree], counters: Sequence[str], *, powers: bool = False
) -> Template:
    """The template of these traces, each in the form of its tree. Raises Unaligned.

    With `powers`, points in loops have 2 ** counter too.
    """
    layering = _Layering(traces, counters, powers)
    contents = [
        (Seen(index, (), dict(trace.sizes)), tree)
        for index, (trace, tree) in enumerate(zip(traces, trees, strict=True))
    ]
    items = layering.lay(contents, ())
    return Template(tuple(traces), tuple(items), tuple(layering.addresses), powers)


class _Layering:
    """One walk over all trees at once."""

    def __init__(self, traces: Sequence[Trace], counters: Sequence[str], powers: bool) -> None:
        self._powers = powers
        self._traces = traces
        self._counters = iter(counters)
        self._places = 0
        self.addresses: list[dict[int, Address]] = [{} for _ in traces]

    def lay(self, contents: list[tuple[Seen, Tree]], loops: tuple[Repeated, ...]) -> list[Item]:
        items: list[Item] = []
        for position in range(max((len(tree) for _, tree in contents), default=0)):
            row = [(seen, tree[position] if position < len(tree) else None) for seen, tree in contents]
            if any(isinstance(entry, Rolled) for _, entry in row):
                items.append(self._loop(row, loops))
            else:
                items.append(self._place(row, loops))
        return items

    def _place(self, row: list[tuple[Seen, Any]], loops: tuple[Repeated, ...]) -> Place:
        place = Place(self._places, loops)
        self._places += 1
        for seen, index in row:
            if index is None:
                raise Unaligned(place.step if place.occurrences else self._first(row), None)
            step = self._traces[seen.trace].steps[index]
            if place.occurrences and step.signature != place.step.signature:
                raise Unaligned(place.step, step)
            place.occurrences.append(Occurrence(seen, step))
            self.addresses[seen.trace][index] = Address(place, seen.counters)
        return place

    def _first(self, row: list[tuple[Seen, Any]]) -> Step | None:
        return next((self._traces[seen.trace].steps[index] for seen, index in row if index is not None), None)

    def _loop(self, row: list[tuple[Seen, Any]], loops: tuple[Repeated, ...]) -> Repeated:
        loop = Repeated(next(self._counters), loops)
        inside: list[tuple[Seen, Tree]] = []
        for seen, entry in row:
            if not isinstance(entry, Rolled):
                raise Unaligned(self._traces[seen.trace].steps[entry] if entry is not None else None, None)
            loop.trips.append((seen, len(entry.repetitions)))
            for count, repetition in enumerate(entry.repetitions):
                point = {**seen.point, **loop.point(count, self._powers)}
                inside.append((Seen(seen.trace, (*seen.counters, count), point), repetition))
        loop.body = self.lay(inside, (*loops, loop))
        return loop


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
