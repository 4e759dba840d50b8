"""Sizes at the numbers of the user's code, on both sides of each, and far beyond: where a line may do something else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random

from anyshape.domain import Compare, Number, Ref, Undecided, find_point
from anyshape.inputs import Declared

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
        name: dict.fromkeys(_values(numbers, (ends or {}).get(name, domain.dim(name).max))) for name in domain.names
    }
    longest = max(map(len, values.values()), default=0)
    rows = {name: list(each) for name, each in values.items()}
    proposed = ((name, rows[name][index]) for index in range(longest) for name in rows if index < len(rows[name]))
    points = [point for name, value in proposed if (point := _alone(declared, name, value)) is not None]
    return [dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points)]


def _values(numbers: Sequence[int], end: int | None) -> Iterator[int]:
    """Sizes of one dim up to its end. One more than twice a number tells a threshold from a rounded quotient."""
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
