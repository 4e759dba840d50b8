"""Find sizes at which a comparison in the user's code changes its result, by calls: for captures that record no conditions.

n = np.array(x.shape)[0]                         the module is called at n = 5 and n = 11: the comparison is 367 and 361
return x * 2 if n > self.a * self.b else x       apart, so it should switch at 372, where a call shows whether it does
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from anyshape.domain import Sizes
from anyshape.inputs import Declared
from anyshape.modules.watched_comparisons import Comparison

_MOST_CALLS = 80
_MOST_STEPS = 24  # towards one switch: a square is approached by steps that shrink slowly
_BEYOND = (6, 40, 300)
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
