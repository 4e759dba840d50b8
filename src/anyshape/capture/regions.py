"""Both sides of a branch: where a condition of the user's code cuts the domain, the other side is captured too.

before  one program under `b > 3`    ->   that, and another under its negation; until the regions cover the domain

Only conditions that the user's own code asks about separate regions; torch's bookkeeping is left to verification. A loop
over a size makes a region for each size: such a family has no end, and another rung takes over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from anyshape.capture.guards import decide_guard
from anyshape.capture.trace_sizes import choose_trace_sizes
from anyshape.domain import (
    TRUE,
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Op,
    Ref,
    all_of,
    conjuncts,
    dims_of,
    holds,
    negate,
    smallest_point,
)
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard, Region

FEW_REGIONS = 2
MOST_REGIONS = 16
_MOST_PINNED = 2
_FEW_SIZES = 12

Sizes = Mapping[str, int]
Capture = Callable[[Sizes], Captured]


class EndlessRegions(Exception):
    """The regions do not cover the domain: too many, one for each size, or the other side cannot be traced.

    `guard` is the condition that separates them; `is_loop` says that there is a region for each size.
    """

    def __init__(self, guard: Guard, *, is_loop: bool = False) -> None:
        super().__init__(guard.text)
        self.guard = guard
        self.is_loop = is_loop


def cover_domain(
    first: Captured,
    declared: Declared,
    capture: Capture,
    answers: Callable[[Sizes], bool],
    also: tuple[Guard, ...] = (),
) -> Captured:
    """Regions that cover the domain. Raises EndlessRegions; whatever capture raises on the other side goes through.

    `also` are conditions that verification has shown to separate answers. Without any, only few regions are made: many
    conditions in a model's code choose between ways to the same answer, and each region is a program in the file.
    """
    most = MOST_REGIONS if also else FEW_REGIONS
    extra = {guard.condition for guard in also}
    regions = [_bounded(first.regions[0], extra)]
    while (left := _uncovered(declared, regions)) is not None:
        blamed = next(guard for region in reversed(regions) for guard in _separating(region, extra))
        is_loop = _pins_size_by_size(regions, declared.domain)
        if len(regions) >= most or is_loop:
            raise EndlessRegions(blamed, is_loop=is_loop)
        outside = [negate(region.condition) for region in regions]
        sizes = choose_trace_sizes(declared, answers, *outside) or left
        other = capture(sizes)
        if [answer.path for answer in other.answers] != [answer.path for answer in first.answers]:
            raise EndlessRegions(blamed)  # another structure: no one file can answer both
        region = _bounded(other.regions[0], extra)
        if not holds(region.condition, sizes):
            raise EndlessRegions(blamed)
        regions.append(replace(region, answers=other.answers))
    if len(regions) == 1:
        return first
    domain = declared.domain
    return replace(
        first, regions=tuple(_redecided(region, domain.with_relations(region.condition)) for region in regions)
    )


def first_alone(captured: Captured, domain: Domain) -> Captured:
    """The first region for the whole domain, its guards decided there: verification has the last word."""
    return replace(captured, regions=(_redecided(replace(captured.regions[0], condition=TRUE), domain),))


def _bounded(region: Region, extra: set[Condition | None]) -> Region:
    conditions = [guard.condition for guard in _separating(region, extra) if guard.condition is not None]
    return replace(region, condition=all_of(conditions))


def _redecided(region: Region, domain: Domain) -> Region:
    """The region with its guards decided where it answers, not on all of the domain."""
    return replace(region, guards=tuple(decide_guard(guard, domain) for guard in region.guards))


def _separating(region: Region, extra: set[Condition | None]) -> list[Guard]:
    return [
        guard
        for guard in region.guards
        if guard.condition is not None
        and guard.status != "proved"
        and (guard.by_user or guard.condition in extra or negate(guard.condition) in extra)
    ]


def _uncovered(declared: Declared, regions: list[Region]) -> dict[str, int] | None:
    """Sizes that no region has; None when the regions cover the domain. Raises Undecided: not knowing is not covering."""
    return smallest_point(declared.domain, *(negate(region.condition) for region in regions))


def _pins_size_by_size(regions: list[Region], domain: Domain) -> bool:
    """Whether regions differ by the constant that a dim of many sizes, or a sum with it, equals: the sign of a loop, or of
    a size that was made a number."""
    pinned = {
        (part.left, part.right.value)
        for region in regions
        for part in conjuncts(region.condition)
        if isinstance(part, Compare) and part.op == "==" and isinstance(part.right, Number) and _is_sum(part.left)
    }
    constants = Counter(left for left, _ in pinned)
    return any(
        count >= _MOST_PINNED and not any(_has_few_sizes(domain, name) for name in dims_of(left))
        for left, count in constants.items()
    )


def _is_sum(expr: Expr) -> bool:
    """A dim, or a dim with a number added: not a remainder, of which few values are all there are."""
    return isinstance(expr, Ref) or (
        isinstance(expr, Op) and expr.symbol in ("+", "-") and len(dims_of(expr)) == 1 and all(map(_is_term, expr.args))
    )


def _is_term(expr: Expr) -> bool:
    return isinstance(expr, (Ref, Number))


def _has_few_sizes(domain: Domain, name: str) -> bool:
    dim = domain.dim(name)
    return dim.max is not None and (dim.max - dim.min) // dim.multiple < _FEW_SIZES
