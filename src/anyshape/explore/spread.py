"""Further sizes to compare a file at that is not proved.

At the numbers of the user's code, on both sides of each and far beyond: there a line may do something else. Over each dim up to
its end, since between two sizes that were compared it may be wrong: steps of one and a half, one beyond each power of two, and
random ones; one dim at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random

from anyshape.domain import Compare, Number, Ref, Undecided, find_point
from anyshape.explore.cost_estimates import Costing
from anyshape.inputs import Declared
from anyshape.records.explored import Extent

_FAR = 8


def sizes_at_numbers(
    declared: Declared, numbers: Sequence[int], ends: dict[str, int] | None = None
) -> list[dict[str, int]]:
    """Every dim at every number, next to it, at multiples of it, between two and beyond all, one dim at a time.

    `ends` are the largest sizes of dims without an upper end. All points are in the domain; none is left out for its
    cost, which is for the caller to weigh. The most telling sizes of all numbers come first.
    """
    domain = declared.domain
    values = {
        name: dict.fromkeys(_around(numbers, (ends or {}).get(name, domain.dim(name).max))) for name in domain.names
    }
    longest = max(map(len, values.values()), default=0)
    rows = {name: list(each) for name, each in values.items()}
    proposed = ((name, rows[name][index]) for index in range(longest) for name in rows if index < len(rows[name]))
    points = [point for name, value in proposed if (point := _alone(declared, name, value)) is not None]
    return [dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points)]


def _around(numbers: Sequence[int], end: int | None) -> Iterator[int]:
    """Sizes of one dim up to its end. One more than twice a number separates a threshold from a rounded quotient."""
    numbers = [number for number in numbers if end is None or number - 1 <= end]
    if not numbers:
        return
    ordered = sorted(numbers)
    yield from _below(end, (value for number in numbers for value in (number, number + 1, number - 1)))
    for factor in (2, 3, 5):
        yield from _below(end, (factor * number + rest for number in numbers for rest in (0, 1, -1)))
    between = [(low + high) // 2 for low, high in itertools.pairwise(ordered)]
    yield from _below(end, between)
    farthest = end if end is not None else 8 * ordered[-1]
    random = Random(0)
    for _ in range(_FAR):
        low = min(ordered[0], farthest)
        yield random.randint(low, farthest)


def _below(end: int | None, values: Iterator[int] | list[int]) -> Iterator[int]:
    return (value for value in values if end is None or value <= end)


def _alone(declared: Declared, name: str, value: int) -> dict[str, int] | None:
    """The example's sizes with this one; where the rules forbid that, any sizes with it."""
    sizes = {**declared.example_sizes, name: value}
    if declared.domain.contains(sizes):
        return sizes
    if not declared.domain.dim(name).contains(value):
        return None
    try:
        return find_point(declared.domain, Compare("==", Ref(name), Number(value)))
    except Undecided:
        return None


_FIRST = 8  # smaller sizes are tried anyway
_RANDOM = 8
_SHARE = 16  # one part in so many of all work


def spread_sizes(declared: Declared, extent: Extent, cost: Costing) -> list[dict[str, int]]:
    """Points of the extent, as many as a share of all work suffices for, in random order; dims take turns."""
    rows = [_values(end.largest) for end in extent.ends]
    found: list[dict[str, int]] = []
    left = cost.all_work // _SHARE
    for row in itertools.zip_longest(*rows):
        for end, value in zip(extent.ends, row, strict=True):
            multiple = extent.domain.dim(end.name).multiple
            point = {**declared.example_sizes, end.name: (value or 0) // multiple * multiple}
            if value is None or point in found or not extent.domain.contains(point) or cost.excess(point):
                continue
            work = cost(point)
            if work <= left:
                left -= work
                found.append(point)
    return found


def _values(end: int) -> list[int]:
    """Sizes of one dim up to its end, in an order in which any first few are spread over all."""
    random = Random(end)
    found = [*_steps(end), *(random.randint(1, end) for _ in range(_RANDOM if end > _FIRST else 0))]
    found = list(dict.fromkeys(found))
    random.shuffle(found)
    return found


def _steps(end: int) -> Iterator[int]:
    size = _FIRST
    while size <= end:
        yield from (value for value in (size + 1, size + size // 2) if value <= end)
        size *= 2
