"""What a step of the template takes: a value of the same scope, one carried from the repetition before, one of many.

Everything is found from the edges that the traces show. `resolve` is given all sightings of one argument: at which point
it was seen, and which step of that trace it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import torch

from anyshape.capture.generalized.fits import Fits
from anyshape.capture.generalized.template import Place, Repeated, Seen, Template
from anyshape.capture.generalized.trace import Constant, Input, Result, Weight
from anyshape.domain import Expr

_DEEPEST_CARRY = 6


@dataclass(frozen=True)
class Value:
    """What a place of this scope, or of a scope around it, gives."""

    place: Place
    output: int | None


@dataclass(frozen=True)
class Given:
    """An open leaf of the inputs."""

    position: int


@dataclass(frozen=True)
class Held:
    """A tensor of the module."""

    weight: Weight


@dataclass(frozen=True)
class Made:
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
    last_shapes: list[tuple[Seen, tuple[int, ...]]]
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


Operand = Union[Value, Given, Held, Made, Carried, Final, Element]
Sighting = tuple[Seen, Any]


class Unresolved(Exception):
    """No rule tells where an argument comes from."""


class Resolver:
    """Resolves the arguments of one template, and remembers what its loops carry."""

    def __init__(self, template: Template, fits: Fits) -> None:
        self.template = template
        self.fits = fits
        self.slots: dict[Repeated, list[Slot]] = {}

    def resolve(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...], depth: int = 0) -> Operand:
        """The operand that explains all sightings in the scope of these loops. Raises Unresolved."""
        if all(isinstance(target, Constant) for _, target in sightings):
            return Made(tuple(sightings), id(sightings[0][1].tensor))
        for attempt in (self._same, self._outside, self._after_loop):
            found = attempt(sightings, loops)
            if found is not None:
                return found
        return self._carried(sightings, loops, depth)

    def key(self, seen: Seen, target: Any) -> tuple[Any, tuple[int, ...]]:
        """What a target is in the template, and in which repetitions."""
        if isinstance(target, Result):
            address = self.template.addresses[seen.trace][target.step]
            return Value(address.place, target.output), address.counters
        if isinstance(target, Input):
            return Given(target.position), ()
        if isinstance(target, Weight):
            return Held(target), ()
        raise Unresolved

    def _same(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...]) -> Operand | None:
        """One place in all sightings: in this scope, around it, or inside a loop that is over."""
        keys = [self.key(seen, target) for seen, target in sightings]
        operand = keys[0][0]
        if any(other != operand for other, _ in keys):
            return None
        if not isinstance(operand, Value):
            return operand  # type: ignore[no-any-return]
        shared = _shared(operand.place.loops, loops)
        if any(counters[:shared] != seen.counters[:shared] for (_, counters), (seen, _) in zip(keys, sightings, strict=True)):
            return None
        if len(operand.place.loops) == shared:
            return operand
        loop = operand.place.loops[shared]
        indices = [counters[shared] for _, counters in keys]
        inner = self._inner(sightings, [(*seen.counters[:shared], index) for (seen, _), index in zip(sightings, indices, strict=True)], loop)
        last = [loop.trips_at(seen.trace, seen.counters[:shared]) - 1 for seen, _ in sightings]
        if indices == last:
            for slot in self.slots.get(loop, ()):
                if slot.following == inner:
                    return Final(slot)
        index = self.fits.integers([(seen.point, index) for (seen, _), index in zip(sightings, indices, strict=True)])
        if index is None:
            raise Unresolved
        return Element(loop, inner, index)

    def _inner(self, sightings: Sequence[Sighting], counters: list[tuple[int, ...]], loop: Repeated) -> Operand:
        """The same targets, seen from inside the loop's body."""
        moved = [
            (self.moved(seen, inside, (*loop.loops, loop)), target)
            for (seen, target), inside in zip(sightings, counters, strict=True)
        ]
        return self.resolve(moved, (*loop.loops, loop))

    def moved(self, seen: Seen, counters: tuple[int, ...], loops: tuple[Repeated, ...]) -> Seen:
        point = dict(self.template.traces[seen.trace].sizes)
        point.update({loop.counter: counter for loop, counter in zip(loops, counters, strict=True)})
        return Seen(seen.trace, counters, point)

    def _outside(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...]) -> Operand | None:
        """The innermost counter makes no difference: an argument of the scope around."""
        if not loops:
            return None
        groups: dict[tuple[int, tuple[int, ...]], set[Any]] = {}
        for seen, target in sightings:
            groups.setdefault((seen.trace, seen.counters[:-1]), set()).add(self.key(seen, target))
        if any(len(group) > 1 for group in groups.values()) or len(groups) == len(sightings):
            return None
        once: dict[tuple[int, tuple[int, ...]], Sighting] = {}
        for seen, target in sightings:
            outer = seen.trace, seen.counters[:-1]
            once.setdefault(outer, (self.moved(seen, seen.counters[:-1], loops[:-1]), target))
        return self.resolve(list(once.values()), loops[:-1])

    def _after_loop(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...]) -> Operand | None:
        """A loop's last value where it ran, what went into it where it did not."""
        inside = [(seen, target) for seen, target in sightings if self.finished_loop(seen, target, loops) is not None]
        found = {self.finished_loop(seen, target, loops) for seen, target in inside}
        if len(found) != 1 or len(inside) == len(sightings):
            return None
        (loop,) = found
        assert loop is not None
        level = len(loop.loops)
        ran = {(seen.trace, seen.counters) for seen, _ in inside}
        rest = [(seen, target) for seen, target in sightings if (seen.trace, seen.counters) not in ran]
        if any(loop.trips_at(seen.trace, seen.counters[:level]) != 0 for seen, _ in rest):
            return None
        counters = [self.key(seen, target)[1][: level + 1] for seen, target in inside]
        lasts = [loop.trips_at(seen.trace, seen.counters[:level]) - 1 for seen, _ in inside]
        if [counter[-1] for counter in counters] != lasts:
            return None
        following = self._inner(inside, counters, loop)
        for slot in self.slots.get(loop, ()):
            if slot.following == following:
                return Final(slot)
        raise Unresolved

    def finished_loop(self, seen: Seen, target: Any, loops: tuple[Repeated, ...]) -> Repeated | None:
        """The loop that is over and gave this; None where it comes from this scope or from around it."""
        if not isinstance(target, Result):
            return None
        operand, _ = self.key(seen, target)
        shared = _shared(operand.place.loops, loops)
        return operand.place.loops[shared] if len(operand.place.loops) > shared else None

    def _carried(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...], depth: int) -> Operand:
        if not loops or depth > _DEEPEST_CARRY:
            raise Unresolved
        loop = loops[-1]
        first = [(self.moved(seen, seen.counters[:-1], loops[:-1]), target) for seen, target in sightings if seen.counters[-1] == 0]
        later = [
            (self.moved(seen, (*seen.counters[:-1], seen.counters[-1] - 1), loops), target)
            for seen, target in sightings
            if seen.counters[-1] > 0
        ]
        if not first or not later:
            raise Unresolved
        initial = self.resolve(first, loops[:-1])
        following = self.resolve(later, loops, depth + 1)
        for slot in self.slots.get(loop, ()):
            if slot.initial == initial and slot.following == following:
                return Carried(slot)
        slot = Slot(loop, initial, following, self._shapes(sightings), self._shapes(later), self._dtype(sightings))
        self.slots.setdefault(loop, []).append(slot)
        return Carried(slot)

    def _shapes(self, sightings: Sequence[Sighting]) -> list[tuple[Seen, tuple[int, ...]]]:
        shapes = [(seen, self.template.traces[seen.trace].shape_of(target)) for seen, target in sightings]
        known = [(seen, shape) for seen, shape in shapes if shape is not None]
        if len(known) != len(shapes) or len({len(shape) for _, shape in known}) != 1:
            raise Unresolved
        return known

    def _dtype(self, sightings: Sequence[Sighting]) -> torch.dtype:
        found = {self.template.traces[seen.trace].dtype_of(target) for seen, target in sightings}
        (dtype,) = found if len(found) == 1 else (None,)
        if dtype is None:
            raise Unresolved
        return dtype


def _shared(first: Sequence[Repeated], second: Sequence[Repeated]) -> int:
    """How many loops, from the outside, are the same."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other:
            break
        count += 1
    return count
