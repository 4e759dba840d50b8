"""Which of many points to keep where calls are dear: together they show every fact that all of them show, at least cost.

A fact is what decides whether a file is right: a dim at one of its ends, at 1, at an odd and at an even size; all dims at
their lowest; two dims that are unequal, and which one is larger; a condition that holds, and that does not; a comparison
one step to each side.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from anyshape.domain.condition import Compare, Condition, comparisons_in, holds
from anyshape.domain.dims import Domain
from anyshape.domain.expr import Number

Sizes = Mapping[str, int]
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
