"""Which axes of an example can change, and which only together: moves, found by calling the module at other sizes.

A move has a step for each of its axes: `{x axis 0: 1, mask axis 0: 1}` are two axes that grow together, `{x axis 1: 2,
y axis 1: 1}` an axis that is twice another, `{x axis 1: 1, y axis 1: -1}` two that share a constant sum. The axes that can
change alone are found first. Each other axis is tried with companions, in small sets before large ones.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

Place = tuple[str, int]  # path of an input, and an axis of it
Move = dict[Place, int]  # how much each axis changes in one step

_MOST_CALLS = 400  # to find the companions of one axis
_LARGEST_RATIO = 16
_LARGEST_SET = 64  # axes of a move, each of which is left out once to see whether it is needed


class Accepts(Protocol):
    """Whether the module answers with these axes at these sizes, and all others as in the example."""

    def accepts(self, sizes: Mapping[Place, int], /) -> bool: ...


def find_moves(trial: Accepts, sizes: Mapping[Place, int]) -> list[Move]:
    """Moves under which the module goes on answering; `sizes` has the axes that may change, with their example's sizes."""
    return _Search(trial, sizes).run()


def is_taken(trial: Accepts, sizes: Mapping[Place, int], move: Move) -> bool:
    """Whether the module answers at two further places on the way of a move: a far larger one, or half way down.

    Near places may be rounding alone, and a small place a broadcast inside of the module. An axis that becomes 1 shows
    nothing, since 1 broadcasts against anything.
    """
    lead = next(iter(move))
    size = sizes[lead]

    def answers(other: int) -> bool:
        steps, rest = divmod(other - size, move[lead])
        moved = {place: sizes[place] + steps * step for place, step in move.items()}
        return not rest and all(each >= 2 for each in moved.values()) and trial.accepts(moved)

    larger = [other for other in dict.fromkeys([2 * size, 3 * size, 4 * size, 3 * size // 2]) if other > size]
    if any(map(answers, larger)):
        return sum(map(answers, [*larger, size + 1, size // 2])) > 1
    return answers(size // 2) and any(map(answers, {3 * size // 4, size // 3, size // 4} - {size // 2}))


class _Search:
    def __init__(self, trial: Accepts, sizes: Mapping[Place, int]) -> None:
        self.trial, self.sizes = trial, sizes
        alone = [place for place in sizes if is_taken(trial, sizes, {place: 1})]
        # An axis that may only grow must be as long as another one: an initial state of more rows than the batch.
        self.bounded = [place for place in alone if sizes[place] > 2 and not trial.accepts({place: sizes[place] - 1})]
        self.free = [place for place in alone if place not in self.bounded]
        self.stuck = [place for place in sizes if place not in alone]
        self.tied: set[Place] = set()  # axes of moves that were found

    def run(self) -> list[Move]:
        moves: list[Move] = [{place: 1} for place in self.free]
        for lead in self.stuck:
            if not any(lead in move for move in moves):
                self.tied = {place for move in moves for place in move if len(move) > 1}
                places = [*self.stuck, *(place for place in self.bounded if self._follows(place, lead))]
                move = self._find_move(lead, places) or self._find_move(lead, list(self.sizes))
                moves += [move] if move is not None else []
        return [*moves, *({place: 1} for place in self.bounded if not any(place in move for move in moves))]

    def _find_move(self, lead: Place, places: Sequence[Place]) -> Move | None:
        """The first set of companions with which an axis can change; axes that can change without them are left out."""
        proposed = itertools.islice(self._proposed(lead, places), _MOST_CALLS)
        move = next((move for move in proposed if is_taken(self.trial, self.sizes, move)), None)
        if move is None:
            return None
        needed = self._needed(move)
        own = [*self.free, *(place for place in self.bounded if not self._follows(place, lead))]
        return {place: step for place, step in needed.items() if place == lead or place not in own}

    def _follows(self, place: Place, lead: Place) -> bool:
        """Whether an axis that may only grow is as long as this one in the example: what is longer has room of its own."""
        return self.sizes[place] == self.sizes[lead]

    def _needed(self, move: Move) -> Move:
        lead = next(iter(move))
        for place in list(move) if len(move) <= _LARGEST_SET else ():
            fewer = {other: step for other, step in move.items() if other != place}
            if place != lead and is_taken(self.trial, self.sizes, fewer):
                move = fewer
        return move

    def _proposed(self, lead: Place, places: Sequence[Place]) -> Iterator[Move]:
        seen: set[frozenset[tuple[Place, int]]] = set()
        for move in self._sets(lead, places):
            key = frozenset(move.items())
            if len(move) > 1 and key not in seen:
                seen.add(key)
                yield move

    def _sets(self, lead: Place, places: Sequence[Place]) -> Iterator[Move]:
        """Sets of companions: axes of one size before others, few before many, growing ones before shrinking ones."""
        units = _units([place for place in places if place != lead], self.sizes)
        own = next((unit for unit in units if _unit_key(unit[0], self.sizes) == _unit_key(lead, self.sizes)), ())
        alike = [unit for unit in units if self.sizes[unit[0]] == self.sizes[lead] and unit != own]
        alike.sort(key=lambda unit: unit[0][1] != lead[1])
        heads = [[lead], [lead, *own]]
        groups = [*heads, *([*head, *unit] for unit in alike for head in heads)]
        groups += [[lead, *own, *one, *other] for one, other in itertools.combinations(alike, 2)]
        same_axis = [place for unit in alike for place in unit if place[1] == lead[1]]
        groups += [[lead, *own, *same_axis], [lead, *own, *itertools.chain.from_iterable(alike)]]
        yield from (dict.fromkeys(group, 1) for group in groups)
        others = [unit for unit in units if unit not in alike and unit != own]
        for shrinks in (False, True):
            for group in sorted(groups, key=len):
                for unit in [*others, *(alike if shrinks else ())]:
                    if not set(unit) & set(group):
                        yield from self._with_other(lead, group, unit, shrinks=shrinks)
        for group, (one, other) in itertools.product(groups, itertools.combinations(others, 2)):
            yield dict.fromkeys([*group, *one, *other], 1)

    def _with_other(
        self, lead: Place, group: Iterable[Place], unit: Sequence[Place], *, shrinks: bool
    ) -> Iterator[Move]:
        """The group, and axes of another size which change by as much, or in proportion to their sizes."""
        group, mine, other = list(group), self.sizes[lead], self.sizes[unit[0]]
        if not shrinks:
            yield dict.fromkeys([*group, *unit], 1)
        if self.tied.intersection(unit):  # it follows another axis already, and may do so by as much only
            return
        if shrinks:
            yield {**dict.fromkeys(group, 1), **dict.fromkeys(unit, -1)}
            return
        larger, smaller = max(mine, other), min(mine, other)
        ratio = round(larger / max(smaller, 1))
        if 2 <= ratio <= _LARGEST_RATIO and abs(larger - ratio * smaller) < ratio:
            steps = (ratio, 1) if mine > other else (1, ratio)
            yield {**dict.fromkeys(group, steps[0]), **dict.fromkeys(unit, steps[1])}


def _units(places: Sequence[Place], sizes: Mapping[Place, int]) -> list[tuple[Place, ...]]:
    """The axes in groups that mean the same: the same axis of `past.0.k` and `past.1.k`, of one size."""
    found: dict[tuple[str, int, int], list[Place]] = {}
    for place in places:
        found.setdefault(_unit_key(place, sizes), []).append(place)
    return [tuple(unit) for unit in found.values()]


def _unit_key(place: Place, sizes: Mapping[Place, int]) -> tuple[str, int, int]:
    return re.sub(r"\d+", "#", place[0]), place[1], sizes[place]
