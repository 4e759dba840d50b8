"""Where the arguments of a template come from, found from the edges that the traces show.

`resolve` is given all sightings of one argument: at which point it was seen, and which step of that trace it was. What a
loop carries is found on the way: an argument that is one thing in the first repetition, and in all later ones what the
repetition before gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from anyshape.capture.generalized.template import (
    Carried,
    ConstantOperand,
    Element,
    Final,
    InputOperand,
    Operand,
    Repeated,
    Seen,
    Slot,
    Template,
    Value,
    WeightOperand,
)
from anyshape.capture.generalized.template_fits import Fits
from anyshape.capture.generalized.trace import Constant, Input, Result, Weight
from anyshape.domain import evaluate

_DEEPEST_CARRY = 6

Sighting = tuple[Seen, Any]


_UNKNOWN = InputOperand(-1)
"""What a slot holds at first, while it is being found out."""


class Unresolved(Exception):
    """No rule gives the origin of an argument."""


class Resolver:
    """Resolves the arguments of one template, and remembers what its loops carry."""

    def __init__(self, template: Template, fits: Fits) -> None:
        self.template = template
        self.fits = fits
        self.slots: dict[Repeated, list[Slot]] = {}

    def resolve(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...], depth: int = 0) -> Operand:
        """The operand that explains all sightings in the scope of these loops. Raises Unresolved."""
        if all(isinstance(target, Constant) for _, target in sightings):
            return ConstantOperand(tuple(sightings), id(sightings[0][1].tensor))
        for attempt in (self._here, self._after_loop, self._same, self._outside):
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
            return InputOperand(target.position), ()
        if isinstance(target, Weight):
            return WeightOperand(target), ()
        raise Unresolved

    def _here(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...]) -> Operand | None:
        """One place in all sightings, in this scope or around it."""
        keys = [self.key(seen, target) for seen, target in sightings]
        operand = keys[0][0]
        if any(other != operand for other, _ in keys):
            return None
        if not isinstance(operand, Value):
            return operand  # type: ignore[no-any-return]
        depth = len(operand.place.loops)
        if operand.place.loops != loops[:depth]:
            return None
        same = all(counters == seen.counters[:depth] for (_, counters), (seen, _) in zip(keys, sightings, strict=True))
        return operand if same else None

    def _same(self, sightings: Sequence[Sighting], loops: tuple[Repeated, ...]) -> Operand | None:
        """One place in all sightings, inside a loop that is over."""
        keys = [self.key(seen, target) for seen, target in sightings]
        operand = keys[0][0]
        if any(other != operand for other, _ in keys) or not isinstance(operand, Value):
            return None
        shared = _shared(operand.place.loops, loops)
        if any(
            counters[:shared] != seen.counters[:shared]
            for (_, counters), (seen, _) in zip(keys, sightings, strict=True)
        ):
            return None
        if len(operand.place.loops) == shared:
            return None
        loop = operand.place.loops[shared]
        indices = [counters[shared] for _, counters in keys]
        inside = [(*seen.counters[:shared], index) for (seen, _), index in zip(sightings, indices, strict=True)]
        index = self.fits.integers([(seen.point, index) for (seen, _), index in zip(sightings, indices, strict=True)])
        if index is None:
            return None
        return Element(loop, self._inner(sightings, inside, loop), index)

    def _inner(self, sightings: Sequence[Sighting], counters: list[tuple[int, ...]], loop: Repeated) -> Operand:
        """The same targets, seen from inside the loop's body."""
        moved = [
            (self.moved(seen, inside, (*loop.loops, loop)), target)
            for (seen, target), inside in zip(sightings, counters, strict=True)
        ]
        return self.resolve(moved, (*loop.loops, loop))

    def moved(self, seen: Seen, counters: tuple[int, ...], loops: tuple[Repeated, ...]) -> Seen:
        point = dict(self.template.traces[seen.trace].sizes)
        for loop, counter in zip(loops, counters, strict=True):
            point.update(loop.point(counter, self.template.powers))
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
        """What a finished loop carried: its last value where it ran, what went into it where it did not."""
        wanted = [self.key(seen, target) for seen, target in sightings]
        for loop, slots in self.slots.items():
            if len(loop.loops) > len(loops) or loop.loops != loops[: len(loop.loops)] or loop in loops:
                continue
            for slot in slots:
                if all(
                    self.target_of(Final(slot), seen) == key for (seen, _), key in zip(sightings, wanted, strict=True)
                ):
                    return Final(slot)
        return None

    def target_of(self, operand: Operand, seen: Seen) -> tuple[Any, tuple[int, ...]] | None:
        """What an operand is in a trace, in these repetitions: the opposite of `resolve`. None where it is not known."""
        if isinstance(operand, Value):
            return operand, seen.counters[: len(operand.place.loops)]
        if isinstance(operand, (InputOperand, WeightOperand)):
            return operand, ()
        if isinstance(operand, (Carried, Final)):
            slot = operand.slot
            level = len(slot.loop.loops)
            outer = self.moved(seen, seen.counters[:level], slot.loop.loops)
            done = (
                seen.counters[level]
                if isinstance(operand, Carried)
                else slot.loop.trips_at(outer.trace, outer.counters)
            )
            if done == 0:
                return self.target_of(slot.initial, outer)
            before = self.moved(seen, (*outer.counters, done - 1), (*slot.loop.loops, slot.loop))
            return self.target_of(slot.following, before)
        if isinstance(operand, Element):
            level = len(operand.loop.loops)
            index = evaluate(operand.index, seen.point)
            return self.target_of(
                operand.inner, self.moved(seen, (*seen.counters[:level], index), (*operand.loop.loops, operand.loop))
            )
        return None

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
        first = [
            (self.moved(seen, seen.counters[:-1], loops[:-1]), target)
            for seen, target in sightings
            if seen.counters[-1] == 0
        ]
        later = [
            (self.moved(seen, (*seen.counters[:-1], seen.counters[-1] - 1), loops), target)
            for seen, target in sightings
            if seen.counters[-1] > 0
        ]
        if not first or not later:
            raise Unresolved
        following = self.resolve(later, loops, depth + 1)
        # Known before its initial value: that may be what an outer loop carries, and gets from this very slot.
        slot = Slot(loop, _UNKNOWN, following, self._shapes(sightings), self._dtype(sightings))
        known = self.slots.setdefault(loop, [])
        known.append(slot)
        slot.initial = self.resolve(first, loops[:-1])
        for other in known:
            if other is not slot and other.initial == slot.initial and other.following == following:
                known.remove(slot)
                return Carried(other)
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
