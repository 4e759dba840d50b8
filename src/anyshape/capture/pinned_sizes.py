"""Regions of which each has one size of a dim: the sign of a loop over that size, or of a size that was made a number.

for t in range(n)            ->   n == 5    n == 7    ...          the dim equals a constant
while len(found) < n         ->   3 < n <= 4    6 < n <= 7    ...  its conditions hold at one size
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from anyshape.domain import (
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Op,
    Ref,
    Sizes,
    Undefined,
    conjuncts,
    dims_of,
    holds,
)
from anyshape.records.captured import Region

_FEW_SIZES = 12
_ROW = 4
_NEARBY = 64


def pins_size_by_size(regions: Sequence[Region], domain: Domain) -> bool:
    """Whether all regions differ by the constant that a dim of many sizes, or a sum with it, equals: the sign of a loop, or
    of a size that was made a number. A `match` over some sizes has a region for all others as well."""
    pinned = {
        (part.left, part.right.value)
        for region in regions
        for part in conjuncts(region.condition)
        if isinstance(part, Compare) and part.op == "==" and isinstance(part.right, Number) and _is_sum(part.left)
    }
    constants = Counter(left for left, _ in pinned)
    return any(
        count == len(regions) > 1 and not any(_has_few_sizes(domain, name) for name in dims_of(left))
        for left, count in constants.items()
    )


def pinned_between(regions: Sequence[Region], domain: Domain) -> Condition | None:
    """The one size of a dim of many sizes that the last region has, where each region has one: `3 < n <= 4`, the sign of
    `while len(found) < n`, or what a loop over n // 2 and 3*n + 1 comes to. None otherwise."""
    for name in domain.names:
        if _has_few_sizes(domain, name):
            continue
        pinned = {region.traced_at[name] for region in regions if _has_one_size(region, name, domain)}
        if len(pinned) == len(regions):
            return Compare("==", Ref(name), Number(regions[-1].traced_at[name]))
    return None


def pinned_at_last(regions: Sequence[Region], domain: Domain) -> tuple[str, ...]:
    """The dims of many sizes of which each of the last few regions has one size, and no two of them the same sizes.

    So do those of a size that is made a number on one side of a branch, and so do the entries of a table of sizes.
    """
    last = regions[-_ROW:]
    names = [name for name in domain.names if not _has_few_sizes(domain, name)]
    pinned = tuple(name for name in names if all(_has_one_size(region, name, domain) for region in last))
    sizes = {tuple(region.traced_at[name] for name in pinned) for region in last}
    return pinned if len(regions) > _ROW and pinned and len(sizes) == len(last) else ()


def _has_one_size(region: Region, name: str, domain: Domain) -> bool:
    """Whether a region's condition holds at its own size of the dim, and at no other one nearby."""
    own = region.traced_at[name]
    nearby = ({**region.traced_at, name: size} for size in range(max(own - _NEARBY, 0), own + _NEARBY) if size != own)
    return not any(domain.contains(sizes) and _holds(region.condition, sizes) for sizes in nearby)


def _holds(condition: Condition, sizes: Sizes) -> bool:
    try:
        return holds(condition, sizes)
    except Undefined:
        return False


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
