"""Which points to prefer: sizes of a dim in levels (zero, low, odd, even, high), pairs of levels, points near an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

from anyshape.domain.condition import Compare, Condition, comparisons_in, holds
from anyshape.domain.dims import Dim, Domain, Sizes
from anyshape.domain.expr import Undefined, evaluate

_TELLING = (5, 7, 2, 3, 4, 8, 11, 13, 16, 17, 9, 6, 15, 31, 32, 33, 10, 19, 14, 23, 12)
_MODEST = 33  # how far a dim without an end goes when the example does not go farther
_GAPS = (-1, 0, 1)
_PARTS = 16


def primes_between(low: int, high: int) -> tuple[int, ...]:
    """The primes from `low` to `high`. Sizes that are primes are no multiple, sum or product by accident."""
    return tuple(n for n in range(max(low, 2), high + 1) if all(n % divisor for divisor in range(2, isqrt(n) + 1)))


@dataclass(frozen=True)
class Levels:
    """The sizes of one dim by level, in each the most telling first."""

    dim: Dim
    modest: int  # as large as is tried often; the level `high` begins here
    pools: Mapping[str, tuple[int, ...]]

    def level_of(self, size: int) -> str:
        """The level of any size of the dim, listed or not."""
        for level, pool in self.pools.items():
            if size in pool:
                return level
        if size >= self.modest:
            return "high"
        return "odd" if (size // self.dim.multiple) % 2 else "even"

    def middle(self) -> tuple[int, ...]:
        """The sizes between the ends, or the ends if there are none between."""
        between = self.pools.get("odd", ()) + self.pools.get("even", ())
        return between or tuple(size for pool in self.pools.values() for size in pool)

    def telling(self) -> tuple[int, ...]:
        """All listed sizes."""
        return tuple(size for pool in self.pools.values() for size in pool)


def reach(dim: Dim, example: int | None, smallest: int) -> tuple[int, int]:
    """A modest size and the largest size to try.

    The modest one is about four times the example, or the smallest size that occurs; the largest is the dim's end, and
    the modest one if there is none.
    """
    enough = max(_MODEST, 4 * (example or 0), 4 * smallest if smallest > 1 else 0, smallest + 8 * dim.multiple)
    modest = dim.largest_up_to(enough) or dim.smallest
    return modest, modest if dim.max is None else dim.largest_up_to(dim.max) or dim.smallest


def levels_of(dim: Dim, example: int | None, modest: int, high: int) -> Levels:
    """The dim's telling sizes from its smallest to `high`; sizes are distinguished in steps of the multiple."""
    step, smallest = dim.multiple, dim.smallest
    low = step if smallest == 0 else smallest
    modest = modest if high > 2 * modest else high
    pools: dict[str, tuple[int, ...]] = {"zero": (0,)} if smallest == 0 else {}
    if low <= high:
        pools["low"] = (low,)
    if high > low:
        pools["high"] = _high_pool(dim, modest, high, low)
    taken = {size for pool in pools.values() for size in pool}
    middle = [size for size in _between(dim, example, low, high) if size not in taken and size < modest]
    for level, parity in (("odd", 1), ("even", 0)):
        pool = tuple(size for size in middle if (size // step) % 2 == parity)
        if pool:
            pools[level] = pool
    return Levels(dim, modest, pools)


def _high_pool(dim: Dim, modest: int, high: int, low: int) -> tuple[int, ...]:
    """The end first, then modest sizes by turns with large ones: the large are slow, and seldom show more."""
    neighbour = [high - dim.multiple] if dim.max is not None and high - 3 * dim.multiple > low else []
    if high == modest:
        return (high, *neighbour)
    powers = [2**power * dim.multiple + offset * dim.multiple for power in range(6, 13) for offset in (0, 1, -1)]
    return tuple(dict.fromkeys([high, modest, *neighbour, *(size for size in powers if modest < size < high)]))


def _between(dim: Dim, example: int | None, low: int, high: int) -> list[int]:
    step, base = dim.multiple, low // dim.multiple
    around_powers = [2**power + offset for power in range(6, 13) for offset in (0, 1, -1)]
    around_ends = [base + 1, base + 2, base + 3, base + 5, (base + high // step) // 2, (base + high // step) // 2 + 1]
    beyond = [2 * example // step + 1, 3 * example // step, example // step + 1] if example else []
    units = dict.fromkeys([*_TELLING[:8], *beyond, *_TELLING[8:], *around_powers, *around_ends])
    sizes = [unit * step for unit in units if low < unit * step < high]
    # The example is known to work: any other size of its kind says more.
    return [size for size in sizes if size != example] + [size for size in sizes if size == example]


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


def choose_telling(
    points: Sequence[Sizes], domain: Domain, conditions: Iterable[Condition], cost: Callable[[Sizes], int]
) -> list[Sizes]:
    """As few and as cheap of the points as show all facts that any of them shows, in their order."""
    about = tuple(dict.fromkeys((*conditions, *domain.relations)))
    compares = compares_of(about)
    facts = [frozenset(facts_of(point, domain, about, compares)) for point in points]
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


def compares_of(conditions: Iterable[Condition]) -> tuple[Compare, ...]:
    """The different compares in these conditions."""
    return tuple(dict.fromkeys(compare for condition in conditions for compare in comparisons_in(condition)))


def facts_of(
    point: Sizes, domain: Domain, conditions: Sequence[Condition], compares: Sequence[Compare]
) -> Iterator[Fact]:
    """What a comparison at this point shows: of each dim whether it is even, odd, 1, or at an end of its range; which of
    two dims is larger; which conditions hold or fail there, and by how little the sides of the compares in them differ.

    Conditions and compares are in the facts by their number: their hashes are slow.
    """
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
    amount = "some" if all(point.values()) else "nothing"  # of empty inputs a comparison shows no values
    for number, condition in enumerate(conditions):
        yield "condition", number, "holds" if holds(condition, point) else "fails", amount
    for number, compare in enumerate(compares):
        gap = _gap(compare, point)
        if gap in _GAPS:
            yield "gap", number, gap, amount


def _gap(compare: Compare, point: Sizes) -> int | None:
    """By how much the left side is larger; None where a side has no value."""
    try:
        return evaluate(compare.left, point) - evaluate(compare.right, point)
    except Undefined:
        return None


def find_corner(domain: Domain, cost: Callable[[Sizes], int], most: int) -> list[dict[str, int]]:
    """A list with the point at which all dims are at their ends, or as far towards them as costs no more than `most`.

    Empty for fewer than two dims, for dims without an end, and where nothing but the smallest sizes is cheap enough.
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
