"""Choose the sizes at which a file is compared: a small set, with those first that most often show a fault.

Every point is in the domain and within the budget; if no point is, the smallest one is given alone. The same arguments give the
same points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from random import Random

from anyshape.domain.bound import Truth, Undecided
from anyshape.domain.condition import Compare, Condition, comparisons_in, dims_of, holds, negate
from anyshape.domain.dims import Domain, Point, all_points, empty_domain, filled, is_small
from anyshape.domain.expr import Number, Ref
from anyshape.domain.solve import EFFORT, PATIENCE, Budget, Completion
from anyshape.domain.solver_questions import find_point, range_of, smallest_known_point, smallest_point
from anyshape.domain.telling_points import Covering, Levels, levels_of, reach
from anyshape.findings import DeclarationError

_PATIENCE = 30
_ATTEMPTS = 200


@dataclass(frozen=True)
class Chosen:
    """The points to try, and the points that were proposed and cost more than the budget."""

    points: tuple[Point, ...]
    too_dear: tuple[Point, ...] = ()


def choose_sizes(
    domain: Domain,
    *,
    example: Mapping[str, int] | None = None,
    conditions: Sequence[Condition] = (),
    cost: Callable[[Mapping[str, int]], int] | None = None,
    budget: int = 4_000_000,
    limit: int = 34,
    seed: int = 0,
) -> Chosen:
    """At most `limit` points: all unequal, smallest, largest, both sides of each condition, pairs of levels, random.

    A point that costs more than the budget is lowered to the largest affordable one, and is itself in `too_dear`. If
    nothing is affordable, the smallest point comes back alone: something has to be tried. An empty domain is a
    DeclarationError.
    """
    Domain(domain.dims, tuple(conditions))  # says so if a condition speaks of another dim
    smallest = _smallest(domain)
    price = cost or (lambda sizes: 0)
    if not domain.dims or price(smallest) > budget:
        return Chosen((smallest,))
    chooser = _Chooser(_tightened(domain), smallest, example or {}, Budget(price, budget))
    proposals = chain(
        chooser.opening(), _alternate(chooser.around(conditions), chooser.pairs()), chooser.rest(Random(seed))
    )
    for point in proposals:
        if point is not None:
            chooser.take(point)
        if len(chooser.points) >= limit:
            break
    points = tuple(chooser.points[:limit])
    return Chosen(points, tuple(point for point in chooser.too_dear if point not in points))


def _alternate(one: Iterator[Point | None], two: Iterator[Point | None]) -> Iterator[Point | None]:
    return (point for both in zip_longest(one, two) for point in both)


def _random_size(levels: Levels, random: Random) -> int:
    """Evenly over the orders of magnitude, in steps of the dim's multiple."""
    low, high = levels.dim.smallest // levels.dim.multiple, levels.modest // levels.dim.multiple
    return (low + int((high - low + 1) ** random.random()) - 1) * levels.dim.multiple


def _smallest(domain: Domain) -> Point:
    try:
        point = smallest_point(domain, steps=PATIENCE, each=EFFORT)
    except Undecided:
        point = find_point(domain)
    if point is None:
        raise DeclarationError(empty_domain("no sizes keep all of the rules.", "there is nothing to try."))
    return point


def _tightened(domain: Domain) -> Domain:
    """The same domain with the ends that the relations give to single dims: `past + seq <= 4096` ends both."""
    for name in dict.fromkeys(name for relation in domain.relations for name in dims_of(relation)):
        low, high = range_of(domain, Ref(name), steps=PATIENCE, each=EFFORT) or (None, None)
        if Truth.UNKNOWN in (low, high):
            return domain  # the other ends would take as long, and are not needed
        dim = domain.dim(name)
        domain = domain.with_dim(
            replace(dim, min=low if isinstance(low, int) else dim.min, max=high if isinstance(high, int) else dim.max)
        )
    return domain


class _Chooser:
    """The points so far, and generators of further ones; a generator may yield None, or a point that is there."""

    def __init__(self, domain: Domain, smallest: Point, example: Mapping[str, int], budget: Budget) -> None:
        self.points: list[Point] = []
        self._domain, self._smallest, self._example = domain, smallest, example
        self._uses: Counter[tuple[str, int]] = Counter()
        reaches = {dim.name: reach(dim, example.get(dim.name), smallest[dim.name]) for dim in domain.dims}
        self._completion = Completion(domain, {name: 4 * high for name, (_, high) in reaches.items()}, budget)
        self._levels: dict[str, Levels] = {}
        for dim in domain.dims:
            modest, high = reaches[dim.name]
            self._levels[dim.name] = levels_of(
                dim, example.get(dim.name), modest, self._affordable_high(dim.name, high)
            )
        self._covering = Covering({name: tuple(levels.pools) for name, levels in self._levels.items()})

    @property
    def too_dear(self) -> list[Point]:
        """Points that were proposed and cost more than the budget."""
        return [dict(point) for point in self._completion.too_dear]

    def take(self, point: Point) -> None:
        """Add the point unless it is there already."""
        if point in self.points:
            return
        self.points.append(point)
        self._uses.update(point.items())
        self._covering.meet({name: levels.level_of(point[name]) for name, levels in self._levels.items()})

    def opening(self) -> Iterator[Point | None]:
        """All unequal, all smallest, all 1 where 0 is allowed, all highest, and the example."""
        yield self._afford(self._generic())
        yield self._smallest
        for level in ("low", "high"):
            yield self._afford({name: self._first(levels, level) for name, levels in self._levels.items()})
        if all(name in self._example for name in self._domain.names):
            yield self._afford({name: self._example[name] for name in self._domain.names})

    def around(self, conditions: Sequence[Condition]) -> Iterator[Point | None]:
        """Both sides of each condition, and where its comparisons tip over; where the relations tip over, too."""
        both_sides = [side for condition in conditions for side in (condition, negate(condition))]
        compares = [
            compare for condition in (*conditions, *self._domain.relations) for compare in comparisons_in(condition)
        ]
        gaps = [Compare("==", compare.left - compare.right, Number(gap)) for compare in compares for gap in (0, 1, -1)]
        not_empty = filled(self._domain)
        for probe in dict.fromkeys([*both_sides, *gaps]):
            if not any(holds(probe, point) and all(point.values()) for point in self.points):
                yield (
                    self._afford(self._generic(), (probe, *not_empty))
                    or self._smallest_at(probe, *not_empty)
                    or (self._smallest_at(probe) if not_empty else None)
                )

    def pairs(self) -> Iterator[Point | None]:
        """Points that meet the open pairs of levels, until none are open or no more can be met."""
        fruitless = 0
        while fruitless < _PATIENCE and (proposal := self._covering.propose()):
            target, wanted = proposal
            first = sorted(wanted.items(), key=lambda item: item not in target)
            yield self._afford(self._pick({name: self._levels[name].pools[level] for name, level in first}))
            met = not self._covering.is_open(target)
            self._covering.give_up(target)
            fruitless = 0 if met else fruitless + 1

    def rest(self, random: Random) -> Iterator[Point | None]:
        """The telling sizes that no point has yet, those of all dims side by side; every fourth point at random."""
        pools = {name: levels.telling() for name, levels in self._levels.items()}
        for turn in range(_ATTEMPTS):
            unused = any(self._uses[name, size] == 0 for name, pool in pools.items() for size in pool)
            yield self._afford(self._pick(pools) if unused and turn % 4 else self._random(random))
        if is_small(self._domain, _ATTEMPTS):
            yield from filter(self._is_affordable, all_points(self._domain))

    def _random(self, random: Random) -> Point:
        order = list(self._levels)
        random.shuffle(order)
        return {name: _random_size(self._levels[name], random) for name in order}

    def _smallest_at(self, *probes: Condition) -> Point | None:
        """The smallest point, which may lie beyond the sizes that are tried otherwise: `seq > 512` needs 513."""
        point = smallest_known_point(self._domain, *probes, steps=PATIENCE, each=EFFORT)
        return point if point is not None and self._is_affordable(point) else None

    def _is_affordable(self, point: Point) -> bool:
        is_allowed = self._completion.allows(point)
        if not is_allowed and self._domain.contains(point):
            self._completion.note_too_dear(point)
        return is_allowed

    def _affordable_high(self, name: str, high: int) -> int:
        others = {other: size for other, size in self._smallest.items() if other != name}
        afforded = self._completion.afford({name: high, **others})
        return afforded[0][name] if afforded is not None else self._smallest[name]

    def _afford(self, wishes: Point, conditions: Sequence[Condition] = ()) -> Point | None:
        """The affordable point near the wishes; what had to give way to a relation becomes telling again, if it can.

        Otherwise the solver's taste would decide, and it likes the ends: `a >= b` would be met at `a == b` only.
        """
        afforded = self._completion.afford(wishes, conditions)
        if afforded is None:
            return None
        point, wishes = afforded
        for name in [name for name in self._levels if point[name] != wishes[name]]:
            levels = self._levels[name]
            if wishes[name] >= levels.modest:
                point = self._completion.raise_size(point, name, wishes[name], conditions)
                continue
            for size in sorted(levels.middle(), key=lambda size: self._uses[name, size]):
                changed = {**point, name: size}
                if self._completion.allows(changed, conditions):
                    point = changed
                    break
        return point

    def _generic(self) -> Point:
        return self._pick({name: levels.middle() for name, levels in self._levels.items()})

    def _pick(self, pools: Mapping[str, Sequence[int]]) -> Point:
        """A size from each pool: unlike the others of this point first of all, then one that was little used."""
        sizes: Point = {}
        for name, pool in pools.items():
            sizes[name] = min(pool, key=lambda size: (size in sizes.values(), self._uses[name, size]))
        return sizes

    @staticmethod
    def _first(levels: Levels, level: str) -> int:
        return levels.pools.get(level, next(iter(levels.pools.values())))[0]
