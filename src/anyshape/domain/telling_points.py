"""Which points to prefer: near an example, meeting pairs of levels that no point has met, or few that show every fact.

Greedy: each proposal starts from a pair that nobody met and gives every other dim the level that meets the most.

A fact is what decides whether a file is right: a dim at one of its ends, at 1, at an odd and at an even size; all dims at
their lowest; two dims that are unequal, and which one is larger; a condition that holds, and that does not; a comparison
one step to each side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from anyshape.domain.condition import Compare, Condition, comparisons_in, holds
from anyshape.domain.dims import Domain, Sizes
from anyshape.domain.expr import Number


def sizes_near(domain: Domain, example: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """The example, and the sizes that differ from it by one in one dim, as far as the domain has them."""
    steps = [{}, *({name: size + step} for name, size in example.items() for step in (1, -1))]
    points = [{**example, **step} for step in steps]
    return tuple(point for point in points if domain.contains(point))


Target = tuple[tuple[str, str], ...]


class Covering:
    """The targets still open: every level of every dim alone, and every pair of levels of two dims."""

    def __init__(self, levels: Mapping[str, Sequence[str]]) -> None:
        self._levels = {name: tuple(choices) for name, choices in levels.items()}
        singles = [((name, level),) for name, choices in self._levels.items() for level in choices]
        pairs = [(*one, *two) for one, two in combinations(singles, 2) if one[0][0] != two[0][0]]
        self._open: dict[Target, None] = dict.fromkeys([*singles, *pairs])
        self._used: Counter[tuple[str, str]] = Counter()

    def meet(self, point: Mapping[str, str]) -> int:
        """Close what a point with these levels meets; returns how many targets that were."""
        items = [(name, point[name]) for name in self._levels]
        self._used.update(items)
        met = [target for target in [*((item,) for item in items), *combinations(items, 2)] if target in self._open]
        for target in met:
            del self._open[target]
        return len(met)

    def propose(self) -> tuple[Target, dict[str, str]] | None:
        """An open target, and levels for all dims that meet it and as many others as can be; None if all are met."""
        if not self._open:
            return None
        target = max(self._open, key=len)
        chosen = dict(target)
        for name in sorted(self._levels, key=lambda name: name not in chosen):
            if name not in chosen:
                chosen[name] = max(self._levels[name], key=lambda level: self._gain((name, level), chosen))
        return target, chosen

    def is_open(self, target: Target) -> bool:
        return target in self._open

    def give_up(self, target: Target) -> None:
        """No sizes meet this target."""
        self._open.pop(target, None)

    def _gain(self, item: tuple[str, str], chosen: Mapping[str, str]) -> tuple[int, int]:
        pairs = ((item, other) for other in chosen.items())
        met = sum(pair in self._open or pair[::-1] in self._open for pair in pairs)
        return met, -self._used[item]


Fact = tuple[Hashable, ...]
_GAPS = (-1, 0, 1)
_PARTS = 16


def choose_telling(
    points: Sequence[Sizes], domain: Domain, conditions: Iterable[Condition], cost: Callable[[Sizes], int]
) -> list[Sizes]:
    """As few and as cheap of the points as show all facts that any of them shows, in their order."""
    about = tuple(dict.fromkeys((*conditions, *domain.relations)))
    facts = [frozenset(facts_of(point, domain, about)) for point in points]
    costs = [max(1, cost(point)) for point in points]
    chosen: list[int] = []
    missing = frozenset().union(*facts)
    while missing:
        best = max(range(len(points)), key=lambda place: (len(facts[place] & missing) / costs[place], -place))
        chosen.append(best)
        missing -= facts[best]
    for place in sorted(chosen, key=lambda place: -costs[place]):
        others = [facts[other] for other in chosen if other != place]
        if facts[place] <= frozenset().union(*others):
            chosen.remove(place)
    return [points[place] for place in sorted(chosen)]


def facts_of(point: Sizes, domain: Domain, conditions: Sequence[Condition]) -> Iterator[Fact]:
    """What a comparison at this point shows."""
    if all(point[dim.name] == dim.smallest for dim in domain.dims):
        yield ("all lowest",)
    for dim in domain.dims:
        size = point[dim.name]
        yield dim.name, "even" if size % 2 == 0 else "one" if size == 1 else "odd"
        if size == dim.smallest:
            yield dim.name, "lowest"
        if dim.max is not None and size == dim.largest_up_to(dim.max):
            yield dim.name, "highest"
    for one, other in combinations(domain.names, 2):
        if point[one] != point[other]:
            yield one, other, "less" if point[one] < point[other] else "more"
    for condition in conditions:
        yield condition, "holds" if holds(condition, point) else "fails"
        for compare in comparisons_in(condition):
            gaps = (gap for gap in _GAPS if holds(Compare("==", compare.left - compare.right, Number(gap)), point))
            yield from ((compare, gap) for gap in gaps)


def find_corner(domain: Domain, cost: Callable[[Sizes], int], most: int) -> list[dict[str, int]]:
    """The point at which all dims are at their ends, or as far towards them as costs no more than `most`.

    None for fewer than two dims, for dims without an end, and where nothing but the smallest sizes is cheap enough.
    """
    ends = {dim.name: dim.largest_up_to(dim.max) for dim in domain.dims if dim.max is not None}
    if len(ends) < 2 or len(ends) < len(domain.dims):
        return []
    for part in range(_PARTS, 0, -1):
        point = {}
        for dim in domain.dims:
            reach = (ends[dim.name] or dim.smallest) - dim.smallest
            point[dim.name] = dim.smallest + reach * part // _PARTS // dim.multiple * dim.multiple
        if domain.contains(point) and cost(point) <= most:
            return [point]
    return []
