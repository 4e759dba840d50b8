"""The condition between sizes at which the user's code goes different ways, where the way at each size of a dim is known.

the same way at 3, 30..39 and 300..399 of 1..500     ->     n == 3 or 30 <= n <= 39 or 300 <= n <= 399
the same way at 15, 31, 47, ...                      ->     n % 16 == 15
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import groupby

from anyshape.domain import Compare, Condition, Domain, Number, Ref, all_of, any_of

_MOST_WAYS = 8
_MOST_RUNS = 32
_MODULI = range(2, 129)
_FEWEST_REPEATS = 3

Paths = Mapping[str, Mapping[int, Hashable]]
"""The way of the code, by the sizes of a dim, the other dims as in the example."""


def split_by_paths(paths: Paths, domain: Domain, example: Mapping[str, int]) -> Condition | None:
    """Where the code goes the way that is rarest in the domain; None where it goes one way, or too many."""
    for name, ways in paths.items():
        inside = {size: way for size, way in ways.items() if domain.contains({**example, name: size})}
        counts = {way: list(inside.values()).count(way) for way in dict.fromkeys(inside.values())}
        if 1 < len(counts) <= _MOST_WAYS:
            rarest = min(counts, key=lambda way: counts[way])
            found = _describe(name, sorted(inside), {size for size, way in inside.items() if way == rarest})
            if found is not None:
                return found
    return None


def _describe(name: str, sizes: Sequence[int], chosen: Collection[int]) -> Condition | None:
    """A condition that holds at the chosen ones of these sizes, and at no other of them."""
    size = Ref(name)
    for modulus in _MODULI:
        rests = {each % modulus for each in chosen}
        if len(chosen) >= _FEWEST_REPEATS and len(rests) == 1:
            (rest,) = rests
            if all(each in chosen for each in sizes if each % modulus == rest):
                return Compare("==", size % modulus, Number(rest))
    runs = list(_runs(sizes, chosen))
    if len(runs) > _MOST_RUNS:
        return None
    return any_of(all_of(_ends(size, low, high, sizes)) for low, high in runs)


def _runs(sizes: Sequence[int], chosen: Collection[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of the chosen sizes that lie side by side."""
    for is_chosen, run in groupby(sizes, key=lambda each: each in chosen):
        members = list(run)
        if is_chosen:
            yield members[0], members[-1]


def _ends(size: Ref, low: int, high: int, sizes: Sequence[int]) -> list[Condition]:
    if low == high:
        return [Compare("==", size, Number(low))]
    ends: list[Condition] = [Compare(">=", size, Number(low))] if low != sizes[0] else []
    return [*ends, Compare("<=", size, Number(high))] if high != sizes[-1] else ends
