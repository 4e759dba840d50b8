"""Limits that nothing shows: sizes are tried upwards, and the place where answers end is bisected.

`Embedding(32)` over `arange(seq)` captures without a guard and ends at 32; only trying finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

from anyshape.domain import Compare, Condition, Domain, Number, Op, Ref, Undecided, dims_of, negate, smallest_point

Sizes = Mapping[str, int]
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
    for dim in domain.dims:
        if dim.max is not None:
            continue
        size = max(2 * start[dim.name], 64) + 1  # odd: a size that divides nothing by accident
        while size <= FARTHEST:
            sizes = _moved(domain, start, dim.name, size)
            if sizes is None:
                break
            if not affordable(sizes):
                too_dear.append(sizes)
                break
            if not answers(sizes) or size == FARTHEST:
                break
            size = min(2 * size + 1, FARTHEST)
    return too_dear


def sharpen(domain: Domain, answered: Sequence[Sizes], refused: Sequence[Sizes], answers: Answers) -> None:
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
                sizes = _moved(domain, end, dim.name, middle)
                if sizes is None or middle in (inside, outside):
                    break
                if answers(sizes):
                    inside = middle
                else:
                    outside = middle


def fresh_points(domain: Domain, rules: Sequence[Condition], tried: Sequence[Sizes]) -> Iterator[dict[str, int]]:
    """For each rule, points that nobody tried: some inside all rules, some that break this one alone."""
    seen = {tuple(sizes.items()) for sizes in tried}
    for rule in rules:
        others = [other for other in rules if other is not rule]
        for extra in ([rule], [negate(rule)]):
            near = _edges(rule)
            for point in (_point(domain, *others, *extra, *edge) for edge in ([], *near)):
                if point is not None and tuple(point.items()) not in seen:
                    seen.add(tuple(point.items()))
                    yield point


def _edges(rule: Condition) -> list[list[Condition]]:
    """Places beside a bound, where a rule that is off by one or by a factor shows."""
    if not isinstance(rule, Compare) or not isinstance(rule.right, Number):
        return []
    if isinstance(rule.left, Ref):
        return [[Compare("==", rule.left, Number(rule.right.value + step))] for step in (-1, 0, 1)]
    dims = [Ref(name) for name in dims_of(rule)]
    if isinstance(rule.left, Op) and rule.left.symbol == "*":
        # One dim small and the other beside the bound: there a bound on each dim alone would show.
        near = [rule.right.value + step for step in (-1, 0, 1)]
        return [
            [Compare("==", one, Number(small)), Compare("==", other, Number(size))]
            for one, other in permutations(dims, 2)
            for small in (1, 2)
            for size in near
        ]
    multiple = rule.left.args[1] if isinstance(rule.left, Op) else Number(1)
    return [[Compare("==", dim, multiple * step)] for dim in dims for step in (1, 3, 5)]


def _moved(domain: Domain, sizes: Sizes, name: str, size: int) -> dict[str, int] | None:
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
