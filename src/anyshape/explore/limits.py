"""Limits that nothing shows: sizes are tried upwards, and the place where answers end is bisected.

`Embedding(32)` over `arange(seq)` captures without a guard and ends at 32; only trying finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from anyshape.domain import Compare, Condition, Domain, Number, Ref, Sizes, Undecided, smallest_point

Answers = Callable[[Sizes], bool]

FARTHEST = 4096  # a dim without an upper end is tried and compared up to here


def upper_corners(domain: Domain) -> list[dict[str, int]]:
    """For each dim with an upper end, the smallest point at which it is there."""
    found = [
        _point(domain, Compare("==", Ref(dim.name), Number(dim.largest_up_to(dim.max) or dim.max)))
        for dim in domain.dims
        if dim.max is not None
    ]
    return [point for point in found if point is not None]


def climb(domain: Domain, start: Sizes, answers: Answers, affordable: Answers) -> list[dict[str, int]]:
    """Double each dim that has no upper end, the others at `start`, until refused, too dear or far enough.

    Returns the points that were too dear. No clock decides: the same export must try the same sizes on every machine.
    """
    too_dear: list[dict[str, int]] = []
    for name in open_dims(domain):
        for sizes in points_upwards(domain, start, name):
            if not affordable(sizes):
                too_dear.append(sizes)
                break
            if not answers(sizes):
                break
    return too_dear


def open_dims(domain: Domain) -> list[str]:
    """The dims without an upper end."""
    return [dim.name for dim in domain.dims if dim.max is None]


def points_upwards(domain: Domain, start: Sizes, name: str) -> Iterator[dict[str, int]]:
    """Points with this dim at larger and larger sizes up to FARTHEST, the other dims at `start`."""
    size = max(2 * start[name], 64) + 1  # odd: a size that divides nothing by accident
    while size <= FARTHEST:
        sizes = move_dim(domain, start, name, size)
        if sizes is None:
            return
        yield sizes
        if size == FARTHEST:
            return
        size = min(2 * size + 1, FARTHEST)


def bisect_bounds(domain: Domain, answered: Sequence[Sizes], refused: Sequence[Sizes], answers: Answers) -> None:
    """Bisect, on each dim, between the outermost answered size and the nearest refused one beyond it."""
    for dim in domain.dims:
        for end in (min(answered, key=lambda sizes: sizes[dim.name]), max(answered, key=lambda sizes: sizes[dim.name])):
            inside = end[dim.name]
            upwards = inside == max(sizes[dim.name] for sizes in answered)
            beyond = [s[dim.name] for s in refused if (s[dim.name] > inside if upwards else s[dim.name] < inside)]
            if not beyond:
                continue
            outside = min(beyond) if upwards else max(beyond)
            while abs(outside - inside) > dim.multiple:
                middle = (inside + outside) // 2 // dim.multiple * dim.multiple
                sizes = move_dim(domain, end, dim.name, middle)
                if sizes is None or middle in (inside, outside):
                    break
                if answers(sizes):
                    inside = middle
                else:
                    outside = middle


def move_dim(domain: Domain, sizes: Sizes, name: str, size: int) -> dict[str, int] | None:
    """The point with one dim moved; where the domain forbids it, the nearest that the solver finds; None if none."""
    multiple = domain.dim(name).multiple
    moved = {**sizes, name: -(-size // multiple) * multiple}
    if domain.contains(moved):
        return moved
    return _point(domain, Compare("==", Ref(name), Number(moved[name])))


def _point(domain: Domain, *conditions: Condition) -> dict[str, int] | None:
    """A point of the domain; None where there is none, or where the solver cannot tell in time."""
    try:
        return smallest_point(domain, *conditions)
    except Undecided:
        return None
