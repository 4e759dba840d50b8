"""Comparisons of a capture without proof: how far they go, and sizes at which the user's code may do something else.

How far they go is decided from estimated work alone. Nothing is run for it, so the same declaration and module give the same
extent on every machine:

each dim alone      up to its declared end, or 4096, as far as time and memory allow; the other dims as small as is legal
all dims together   one corner, as large as time and memory allow

Such a capture records no conditions. Calls show at which sizes a comparison in the user's code changes its result:

n = np.array(x.shape)[0]                         the module is called at n = 5 and n = 11: the comparison is 367 and 361
return x * 2 if n > self.a * self.b else x       apart, so it should switch at 372, where a call shows whether it does
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

from anyshape.domain import Compare, Condition, Domain, Number, Ref, Sizes, Undecided, range_of, smallest_known_point
from anyshape.domain.bound import find_bound
from anyshape.domain.condition import conjuncts
from anyshape.domain.intervals import largest_that
from anyshape.domain.solve import EFFORT, PATIENCE
from anyshape.explore.cost_estimates import MEMORY
from anyshape.explore.limits import FARTHEST
from anyshape.inputs import Declared
from anyshape.modules.watched_comparisons import Comparison
from anyshape.records.explored import End, Extent
from anyshape.records.verdict import Untried

_FINENESS = 64
_MOST_CALLS = 80
_MOST_STEPS = 24  # towards one switch: a square is approached by steps that shrink slowly
_BEYOND = (6, 40, 300)


class Limits(Protocol):
    """Says which limits a comparison at given sizes exceeds, in words; "" if none."""

    def excess(self, sizes: Sizes, /) -> str: ...


def find_extent(declared: Declared, limit: Limits, added: Sequence[Condition] = ()) -> Extent:
    """The ends of all dims, the points at which they are compared, and the domain up to there.

    `added` are conditions of the domain that the user did not write: a dim that only they end is open.
    """
    domain = declared.domain
    smallest = _point(domain) or dict(declared.example_sizes)
    written = _without(domain, added)
    reaching = [_reach(declared, smallest, _Aim(name, _largest(written, name)), limit) for name in domain.names]
    found = [each for each in reaching if each is not None]
    ends = tuple(end for end, _ in found)
    conditions: tuple[Condition, ...] = tuple(
        Compare("<=", Ref(end.name), Number(end.largest)) for end in ends if end.is_open or end.is_short
    )
    bounded = domain.narrowed(*conditions)
    left_out = [
        Untried({**point, end.name: end.declared}, end.why)
        for end, point in found
        if end.is_short and end.declared is not None
    ]
    corner, beyond = _joint_corner(bounded, smallest, ends, limit)
    points = [point for _, point in found if bounded.contains(point)]
    points += [corner] if corner is not None else []
    unlike = tuple(dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points))
    return Extent(bounded, ends, unlike, (*left_out, *beyond), conditions)


@dataclass(frozen=True)
class _Aim:
    """A dim, and the end that the user wrote for it."""

    name: str
    written: int | None


def _reach(declared: Declared, smallest: Sizes, aim: _Aim, limit: Limits) -> tuple[End, dict[str, int]] | None:
    """The end of one dim, and the point at which it is compared; None if the solver finds no point at all."""
    domain, name = declared.domain, aim.name
    dim = domain.dim(name)
    end = _largest(domain, name)
    far = max(FARTHEST, declared.example_sizes[name])
    target = far if end is None else end if aim.written is not None else min(end, far)
    step = dim.multiple
    at = _at(domain, smallest, name, target // step * step)
    if at is not None and not limit.excess(at):
        largest = target // step * step
        if aim.written is not None or largest == end:
            return End(name, largest, end), at
        beyond = _at(domain, smallest, name, 2 * largest)
        is_affordable = beyond is not None and not limit.excess(beyond)
        return End(name, largest, None, farther=2 * largest if is_affordable else None), at
    low = max(dim.smallest, min(declared.example_sizes[name], target)) // step
    high = target // step
    point = _at(domain, smallest, name, low * step)
    why = limit.excess(at) if at is not None else "the rules of the domain leave no point that was found there"
    if point is None:
        return None
    while low < high - 1:
        middle = (low + high) // 2
        at = _at(domain, smallest, name, middle * step)
        if at is None or limit.excess(at):
            high = middle
        else:
            low, point = middle, at
    declared_end = end if aim.written is not None else None
    return End(name, low * step, declared_end, why, is_memory=why.startswith(MEMORY)), point


def _without(domain: Domain, added: Sequence[Condition]) -> Domain:
    """The domain without these conditions: without the relations, and without ends of dims that they give."""
    bounds = [bound for condition in added for part in conjuncts(condition) if (bound := find_bound(part)) is not None]
    ends = {(bound.name, bound.max) for bound in bounds}
    dims = tuple(replace(dim, max=None) if (dim.name, dim.max) in ends else dim for dim in domain.dims)
    parts = {part for condition in added for part in conjuncts(condition)}
    return Domain(dims, tuple(relation for relation in domain.relations if relation not in parts))


def _largest(domain: Domain, name: str) -> int | None:
    """The end of a dim: its own, or the one that the relations give it (`past + seq <= 4096` ends both)."""
    dim = domain.dim(name)
    if not domain.relations:
        return None if dim.max is None else dim.largest_up_to(dim.max)
    try:
        found = range_of(domain, Ref(name), steps=PATIENCE, each=EFFORT)
    except Undecided:
        found = None
    high = found.high if found is not None and isinstance(found.high, int) else dim.max
    return None if high is None else dim.largest_up_to(high)


def _joint_corner(
    domain: Domain, smallest: Sizes, ends: tuple[End, ...], limit: Limits
) -> tuple[dict[str, int] | None, tuple[Untried, ...]]:
    """All dims as far towards their ends as the limits allow, and the corner at the ends where that is beyond."""

    def at(part: int) -> dict[str, int] | None:
        wished = dict(smallest)
        for end in ends:
            multiple = domain.dim(end.name).multiple
            low = smallest[end.name]
            wished[end.name] = (low + (end.largest - low) * part // _FINENESS**2) // multiple * multiple
        return wished if domain.contains(wished) else None

    def is_affordable(part: int) -> bool:
        point = at(part)
        return point is not None and not limit.excess(point)

    most = _FINENESS**2
    legal = largest_that(lambda part: part == 0 or at(part) is not None, 0, most)
    allowed = largest_that(lambda part: part == 0 or is_affordable(part), 0, most)
    corner, farthest = at(allowed or 0), at(legal or 0)
    if farthest is None or farthest == corner:
        return corner, ()
    return corner, (Untried(farthest, limit.excess(farthest)),)


def _at(domain: Domain, smallest: Sizes, name: str, size: int) -> dict[str, int] | None:
    """The smallest point with this size of the dim."""
    moved = {**smallest, name: size}
    if domain.contains(moved):
        return moved
    return _point(domain, Compare("==", Ref(name), Number(size)))


def _point(domain: Domain, *conditions: Condition) -> dict[str, int] | None:
    return smallest_known_point(domain, *conditions, steps=PATIENCE, each=EFFORT)


Watch = Callable[[Sizes], Mapping[Comparison, float]]


def find_switches(
    declared: Declared, ends: Mapping[str, int], watch: Watch, is_affordable: Callable[[Sizes], bool]
) -> list[dict[str, int]]:
    """Sizes around each switch, one dim at a time, the others as in the example.

    `watch` calls the module and gives for each comparison how far apart its numbers are; `ends` are the largest sizes of
    dims without an upper end.
    """
    found: dict[tuple[int, ...], dict[str, int]] = {}
    calls = _Calls(watch, is_affordable)
    for name in declared.domain.names:
        line = _Line(declared, name, ends.get(name, declared.domain.dim(name).max), calls)
        for value in line.switches():
            sizes = {**declared.example_sizes, name: value}
            if declared.domain.contains(sizes):
                found.setdefault(tuple(sizes.values()), sizes)
    return list(found.values())


@dataclass
class _Calls:
    """Calls under watch, each once, up to a number of them."""

    watch: Watch
    is_affordable: Callable[[Sizes], bool]
    known: dict[tuple[int, ...], Mapping[Comparison, float]] = field(default_factory=dict)

    def at(self, sizes: Sizes) -> Mapping[Comparison, float]:
        key = tuple(sizes.values())
        if key not in self.known:
            if len(self.known) >= _MOST_CALLS or not self.is_affordable(sizes):
                return {}
            self.known[key] = self.watch(sizes)
        return self.known[key]


@dataclass
class _Line:
    """The sizes of one dim up to its end, the others as in the example."""

    declared: Declared
    name: str
    end: int | None
    calls: _Calls

    def switches(self) -> Iterator[int]:
        example = self.declared.example_sizes[self.name]
        seen = {value: self._at(value) for value in (example, 2 * example + 1, 3 * example + 2, max(1, example // 2))}
        for place in dict.fromkeys(place for each in seen.values() for place in each):
            apart = {value: each[place] for value, each in seen.items() if place in each}
            if len(set(apart.values())) > 1:
                self._approach(place, apart)
                yield from _around(apart)

    def _at(self, value: int) -> Mapping[Comparison, float]:
        sizes = {**self.declared.example_sizes, self.name: value}
        is_inside = (self.end is None or value <= self.end) and self.declared.domain.contains(sizes)
        return self.calls.at(sizes) if is_inside else {}

    def _approach(self, place: Comparison, apart: dict[int, float]) -> None:
        """Call at sizes that are closer and closer to the switches of a comparison, as far as its numbers lead there.

        Beyond the first switch there may be a second one: `abs(n - 377) < 4`.
        """
        self._follow(place, apart)
        first = next(_around(apart), None)
        if first is not None:
            for step in _BEYOND:
                self._call(place, apart, first + step)
            self._follow(place, apart)

    def _follow(self, place: Comparison, apart: dict[int, float]) -> None:
        for _ in range(_MOST_STEPS):
            value = _next_size(apart)
            if value is None or not self._call(place, apart, value):
                return

    def _call(self, place: Comparison, apart: dict[int, float], value: int) -> bool:
        at = self._at(value)
        if place in at:
            apart[value] = at[place]
        return place in at


def _next_size(apart: Mapping[int, float]) -> int | None:
    """Where the line through two numbers reaches zero: between sizes of other signs, or beyond the closest ones."""
    for low, high in _brackets(apart):
        if high - low > 1 and apart[low] and apart[high]:
            value = low + round((high - low) * abs(apart[low]) / (abs(apart[low]) + abs(apart[high])))
            return min(max(value, low + 1), high - 1)
    near = min(apart, key=lambda value: (abs(apart[value]), value))
    others = [value for value in apart if apart[value] != apart[near]]
    if not others or next(_around(apart), None) is not None:
        return None
    other = min(others, key=lambda value: abs(value - near))
    step = apart[near] * (near - other) / (apart[near] - apart[other])
    value = near - (round(step) or (1 if step > 0 else -1))  # at least to the next size
    return value if value >= 0 and value not in apart else None


def _brackets(apart: Mapping[int, float]) -> list[tuple[int, int]]:
    """Sizes next to each other, of those that were called, between which the sign changes."""
    return [pair for pair in pairwise(sorted(apart)) if apart[pair[0]] * apart[pair[1]] <= 0]


def _around(apart: Mapping[int, float]) -> Iterator[int]:
    """The sizes at a switch and next to it; none where the numbers did not meet."""
    for value, distance in apart.items():
        if not distance:
            yield from (value, value + 1, value - 1)
    for pair in _brackets(apart):
        yield from pair
