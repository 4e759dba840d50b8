"""Which sizes to try: a small set that meets what goes wrong, the most telling first.

Every point is in the domain and within the budget. The same arguments give the same points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from random import Random

from anyshape.domain.answers import Undecided
from anyshape.domain.box import all_points, is_small
from anyshape.domain.completion import Completion
from anyshape.domain.condition import All, AnyOf, Compare, Condition, Not, holds, negate
from anyshape.domain.covering import Covering
from anyshape.domain.dims import Domain, empty_domain
from anyshape.domain.expr import Number
from anyshape.domain.levels import Levels, levels_of, modest_high
from anyshape.domain.questions import find_point, smallest_point
from anyshape.findings import DeclarationError

Sizes = dict[str, int]


def choose_sizes(
    domain: Domain,
    *,
    example: Mapping[str, int] | None = None,
    conditions: Sequence[Condition] = (),
    cost: Callable[[Mapping[str, int]], int] | None = None,
    budget: int = 4_000_000,
    limit: int = 34,
    seed: int = 0,
) -> tuple[Sizes, ...]:
    """At most `limit` points: all unequal, smallest, largest, both sides of each condition, pairs of levels, random.

    A point that costs more than the budget is lowered to the largest affordable one. If nothing is affordable, the
    smallest point comes back alone: something has to be tried. An empty domain is a DeclarationError.
    """
    Domain(domain.dims, tuple(conditions))  # says so if a condition speaks of another dim
    smallest = _smallest(domain)
    price = cost or (lambda sizes: 0)
    if not domain.dims or price(smallest) > budget:
        return (smallest,)
    chooser = _Chooser(domain, smallest, example or {}, price, budget)
    proposals = chain(
        chooser.opening(),
        _alternate(chooser.around(conditions), chooser.pairs()),
        chooser.random_rest(Random(seed)),
    )
    for point in proposals:
        if point is not None:
            chooser.take(point)
        if len(chooser.points) >= limit:
            break
    return tuple(chooser.points[:limit])


def _smallest(domain: Domain) -> Sizes:
    try:
        point = smallest_point(domain)
    except Undecided:
        point = find_point(domain)
    if point is None:
        raise DeclarationError(empty_domain("no sizes keep all of the rules.", "there is nothing to try."))
    return point
