"""The box that the ranges of a domain's dims span: its corners, and all of its points when they are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from anyshape.domain.condition import Condition, holds
from anyshape.domain.dims import Domain

FEW = 20_000


def corners(domain: Domain) -> tuple[dict[str, int], ...]:
    """The smallest sizes of all dims together and, where every dim has an end, the largest ones."""
    smallest = {dim.name: dim.smallest for dim in domain.dims}
    largest = {dim.name: dim.largest_up_to(dim.max) for dim in domain.dims if dim.max is not None}
    full = {name: size for name, size in largest.items() if size is not None}
    return (smallest, full) if len(full) == len(domain.dims) else (smallest,)


def fits(domain: Domain, conditions: Sequence[Condition], sizes: dict[str, int]) -> bool:
    """Whether the sizes are in the domain and the conditions hold at them."""
    return domain.contains(sizes) and all(holds(condition, sizes) for condition in conditions)


def is_small(domain: Domain, few: int = FEW) -> bool:
    """Whether trying every point of the box is quick."""
    ends = [(dim.smallest, dim.max, dim.multiple) for dim in domain.dims]
    return prod(few + 1 if high is None else (high - low) // step + 1 for low, high, step in ends) <= few


def all_points(domain: Domain, *conditions: Condition) -> Iterator[dict[str, int]]:
    """Every point of a small box that is in the domain and keeps the conditions."""
    axes = [range(dim.smallest, (dim.max or 0) + 1, dim.multiple) for dim in domain.dims]
    for point in product(*axes):
        sizes = dict(zip(domain.names, point, strict=True))
        if fits(domain, conditions, sizes):
            yield sizes
