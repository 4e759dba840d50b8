"""Find state and randomness: call the module again with equal inputs at a few small sizes, before anything is captured.

the same call again, from the same state and random numbers    -> it must give the same answer
the same call with the random numbers of torch withheld        -> an answer that stays does not depend on them
the same call under other random numbers                       -> an answer that differs is random
calls in a row, at the same and other sizes, of edge values    -> answers that differ from a fresh module's have a memory
other values where every call writes an equal one              -> answers and later values that differ with them show state
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from anyshape.domain import Sizes
from anyshape.explore.carried import call_again, calling, find_constant_call
from anyshape.explore.kept_values import KeptValue, find_kept_values
from anyshape.explore.legal_values import has_drawn_integers
from anyshape.explore.random_draws import CallPoint, Randomness
from anyshape.findings import Source
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.replay import Replay, Reply
from anyshape.modules.kept_tensors import copied
from anyshape.modules.line_trace import find_difference, find_writer
from anyshape.modules.reach import MISSING
from anyshape.modules.same_values import is_same
from anyshape.modules.slots import Slot, Slots, changed_slots, putting, read_slots
from anyshape.processes.workers import survived
from anyshape.records.explored import Kept, Repeated

_CALLS_AHEAD = (10, 100, 1000, 10_000)
_MOST_NUMBERS = 12
_MOST_SLOTS = 32
_MORE_CALLS = 40
_CALL_S = 60.0  # of calls at sizes that nobody has tried yet


def observe_repeats(
    module: torch.nn.Module,
    declared: Declared,
    points: Sequence[Sizes],
    numbers: Sequence[int] = (),
    few: bool = False,
    edges: Sequence[Any] = (),
) -> Repeated:
    """What repeated calls show at these sizes. `numbers` are those of the user's code, which a counter may be compared with.
    `edges` are inputs of rare values, at the example's sizes: a module that writes something then is called in a row with them,
    and one that reads random numbers under others.

    With `few`, two or three calls at the first sizes that the module answers come before: where these show that it depends on
    no random numbers, writes nothing and answers alike, they are all. Comparing a file watches for writes and draws at all
    other sizes.
    A module that writes the same at each call (`self.shift = ...`) is not called forty times more.
    """
    with Replay(module, flatten_outputs) as replay:
        points = _survived(replay, declared, points)
        if few and (constant := find_constant_call(replay, declared, points)) is not None:
            return Repeated(first_calls=(constant,))
        made = list(_answered(replay, declared, points))
        if not made:
            return Repeated()
        steady = [point for point in made if replay.fresh(point.call).is_like(point.fresh)]
        is_proved = any(point.is_legal for point in steady)
        for point in made:
            if point not in steady and (point.is_legal or not is_proved):
                return Repeated(unsteady=True, differs=_line_of_difference(replay, point), sizes=point.sizes)
        rare, drawing = _rare_calls(replay, declared, [] if few else edges)
        replay.reset()
        memory = Memory(replay, [*steady, *(rare if replay.has_written else ())], numbers, few)
        return observe_points(memory, steady, rare=drawing)


def _rare_calls(replay: Replay, declared: Declared, edges: Sequence[Any]) -> tuple[list[CallPoint], list[CallPoint]]:
    """The calls with these inputs that the module answers, twice alike if it writes something; those that draw numbers."""
    found: list[CallPoint] = []
    drawing: list[CallPoint] = []
    for inputs in edges:
        call = partial(call_again, declared, inputs)
        fresh = replay.fresh(call)
        has_drawn = replay.has_drawn
        replay.reset()
        if fresh.raised is None and (not replay.has_written or replay.fresh(call).is_like(fresh)):
            found.append(CallPoint(declared.example_sizes, call, fresh, is_legal=False))
            drawing.extend(found[-1:] if has_drawn else ())
    return found, drawing


def observe_points(
    memory: Memory,
    may_be_random: Sequence[CallPoint],
    before: Slots | None = None,
    rare: Sequence[CallPoint] = (),
) -> Repeated:
    """What calls in a row, and calls under other random numbers show. `before`: `Memory.observe`; `rare`: `Randomness`."""
    if not memory.points:
        return Repeated()
    found = memory.observe(before)
    random = Randomness(memory.replay).observe(may_be_random, rare)
    return replace(found, sizes=found.sizes or random.sizes, random=random.random, drawn=random.drawn)


def _survived(replay: Replay, declared: Declared, points: Sequence[Sizes]) -> list[Sizes]:
    """The example's sizes, and others at which a call does not end the process."""
    others = [sizes for sizes in points if dict(sizes) != dict(declared.example_sizes)]
    lives = survived([partial(_call, replay, declared, sizes) for sizes in others], seconds=_CALL_S)
    died = [sizes for sizes, is_alive in zip(others, lives, strict=True) if not is_alive]
    return [sizes for sizes in points if sizes not in died]


def _call(replay: Replay, declared: Declared, sizes: Sizes) -> None:
    replay.fresh(calling(declared, sizes, 0))


def _answered(replay: Replay, declared: Declared, points: Sequence[Sizes]) -> Iterator[CallPoint]:
    """The calls at these sizes which the module answers: two of different values at the first sizes, one at others."""
    for index, sizes in enumerate(points):
        for seed in (0, 1) if index == 0 else (index,):
            call = calling(declared, sizes, seed)
            fresh = replay.fresh(call)
            if fresh.raised is None:
                is_example = seed == 0 and dict(sizes) == dict(declared.example_sizes)
                yield CallPoint(sizes, call, fresh, is_example or not has_drawn_integers(declared))


def _line_of_difference(replay: Replay, point: CallPoint) -> Source | None:
    return find_difference(lambda: replay.fresh(point.call), lambda: replay.fresh(point.call))


@dataclass(frozen=True)
class Memory:
    """Calls in a row beside calls of a fresh module."""

    replay: Replay
    points: Sequence[CallPoint]
    numbers: Sequence[int]
    few: bool = False

    def observe(self, before: Slots | None = None) -> Repeated:
        """With `before`, the reading of the first state, the last point has just been called from that state."""
        is_begun = before is not None
        if before is None:
            self.replay.reset()
            before = read_slots(self.replay.module)
        seen = [read_slots(self.replay.module, before) if is_begun else before]
        different: CallPoint | None = None
        for point in self._row(is_begun):
            reply = self.replay.onward(point.call)
            seen.append(read_slots(self.replay.module, seen[-1]))
            if not reply.is_like(point.fresh):
                different = point
                break
        self.replay.reset()
        changed = _changed_in_any(before, seen)
        if different is not None and not changed:
            if not different.is_legal and any(point.is_legal for point in self.points):
                return replace(self, points=[point for point in self.points if point is not different]).observe()
            return Repeated(unsteady=True, differs=_line_of_difference(self.replay, different), sizes=different.sizes)
        initial = {slot.path: before.get(slot.path, (slot, MISSING))[1] for slot in changed}
        later = {slot.path: _later_value(slot, before, seen) for slot in changed}
        if different is None and not self._stays_alike(changed):
            return self._repeated(changed, initial, self.points[0])
        if different is None:
            counter = self._counter_that_matters(changed, seen)
            if counter is not None:
                return self._repeated([counter], initial, self.points[0])
            kept = () if self.few else find_kept_values(self.replay, self.points, before, changed)
            return Repeated() if not kept else _only_read(kept, before, self.points[0])
        try:
            telling = self._slots_that_matter(changed, initial, later)
        except LookupError:  # a slot inside a container that only a call makes
            telling = []
        return self._repeated(telling or changed, initial, different)

    def _stays_alike(self, changed: Sequence[Slot]) -> bool:
        """Whether many more calls in a row answer alike, where there is state at all.

        With `few`, a call that leaves the state as it found it is the last: those after it would find the same state.
        """
        point = min(self.points, key=lambda point: math.prod(point.sizes.values()))
        is_alike, before = True, read_slots(self.replay.module)
        for _ in range(_MORE_CALLS if changed else 0):
            is_alike = self.replay.onward(point.call).is_like(point.fresh)
            if not is_alike:
                break
            if self.few:
                before, earlier = read_slots(self.replay.module, before), before
                if not changed_slots(earlier, before):
                    break
        self.replay.reset()
        return is_alike

    def _row(self, is_begun: bool) -> Iterator[CallPoint]:
        first, *others = self.points
        yield from (first, first, *(others[:-1] if is_begun else others), first, first)
        yield from reversed(others)

    def _repeated(self, slots: Sequence[Slot], initial: Mapping[str, Any], point: CallPoint) -> Repeated:
        self.replay.reset()
        written = None
        for each in (point, *self.points):
            self.replay.reset()
            written = written or find_writer(partial(self.replay.onward, each.call), slots)
        self.replay.reset()
        kept = tuple(Kept(slot, initial[slot.path], initial[slot.path] is MISSING) for slot in slots)
        return Repeated(has_memory=True, state=kept, written=written, sizes=point.sizes)

    def _slots_that_matter(
        self, changed: Sequence[Slot], initial: Mapping[str, Any], later: Mapping[str, Any]
    ) -> list[Slot]:
        """The slots whose later value alone changes the outputs, or whose first value does beside later ones of the others."""
        if len(changed) == 1 or len(changed) > _MOST_SLOTS:
            return list(changed)
        all_later = self._replies(changed, [later[slot.path] for slot in changed])
        found = []
        for slot in changed:
            alone = self._replies([slot], [later[slot.path]])
            values = [(initial if each is slot else later)[each.path] for each in changed]
            without = self._replies(changed, values)
            if not _are_like(alone, [point.fresh for point in self.points]) or not _are_like(without, all_later):
                found.append(slot)
        return found

    def _replies(self, slots: Sequence[Slot], values: Sequence[Any]) -> list[Reply]:
        """The answers with these values in the slots; each call begins with copies of them."""
        replies = []
        for point in self.points:
            self.replay.reset()
            with putting(slots, [copied(value) for value in values]):
                replies.append(self.replay.onward(point.call))
        self.replay.reset()
        return replies

    def _counter_that_matters(self, changed: Sequence[Slot], seen: Sequence[Mapping[str, Any]]) -> Slot | None:
        """A counter that changes the answer only after many calls: it is set to what it would be then."""
        point = self.points[0]
        for slot in changed:
            for value in self._values_ahead(slot, seen):
                self.replay.reset()
                with putting([slot], [value]):
                    reply = self.replay.onward(point.call)
                if reply.raised is None and not reply.is_like(point.fresh):
                    return slot
        return None

    def _values_ahead(self, slot: Slot, seen: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
        values = [each[slot.path][1] for each in seen if slot.path in each]
        numbers = [value for value in map(_as_number, values) if value is not None]
        if len(numbers) != len(seen) or len(numbers) < 3:
            return
        first, step = numbers[0], numbers[1] - numbers[0]  # the first two calls are the same
        if step == 0 or step != numbers[2] - numbers[1]:
            return
        near = [int((number - first) // step) for number in self.numbers if (number - first) / step > 0]
        calls = (*_CALLS_AHEAD, *(count + side for count in near[:_MOST_NUMBERS] for side in (-1, 0, 1, 2)))
        for count in calls:
            yield _in_kind_of(values[0], first + step * count)


def _changed_in_any(before: Slots, seen: Sequence[Slots]) -> list[Slot]:
    """The slots that have another value in one of these readings: `self.k = 1 - self.k` has the first one after two calls."""
    changed = [slot for reading in seen for slot in changed_slots(before, reading)]
    return list({slot.path: slot for slot in changed}.values())


def _later_value(slot: Slot, before: Slots, seen: Sequence[Slots]) -> Any:
    """The last value that is not the first one."""
    absent = (slot, MISSING)
    first = before.get(slot.path, absent)[1]
    values = [reading.get(slot.path, absent)[1] for reading in seen]
    return next((value for value in reversed(values) if not is_same(value, first)), values[-1])


def _only_read(kept: Sequence[KeptValue], before: Slots, point: CallPoint) -> Repeated:
    state = tuple(Kept(each.slot, before[each.slot.path][1], False) for each in kept)
    written = next((each.written for each in kept if each.written is not None), None)
    return Repeated(has_memory=True, state=state, written=written, sizes=point.sizes, is_foreseen=True)


def _as_number(value: Any) -> float | int | None:
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
        value = value.item()
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _in_kind_of(value: Any, number: float) -> Any:
    return torch.full_like(value, number) if isinstance(value, torch.Tensor) else type(value)(number)


def _are_like(ones: Sequence[Reply], others: Sequence[Reply]) -> bool:
    return all(one.is_like(other) for one, other in zip(ones, others, strict=True))
