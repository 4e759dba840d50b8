"""Sizes spread over each dim up to its end: between two that were compared, a file without proof may be wrong.

Steps of one and a half, one beyond each power of two, and random ones; one dim at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from anyshape.explore.cost_estimates import Costing
from anyshape.inputs import Declared
from anyshape.records.extent import Extent

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
