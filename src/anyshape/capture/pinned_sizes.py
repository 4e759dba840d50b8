"""Regions of which each has one size of a dim: the sign of a loop over that size, or of a size that was made a number.

for t in range(n)            ->   n == 5    n == 7    ...          the dim equals a constant
while len(found) < n         ->   3 < n <= 4    6 < n <= 7    ...  its bounds leave one size
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from anyshape.domain import Compare, Condition, Domain, Expr, Number, Op, Ref, conjuncts, dims_of
from anyshape.records.captured import Region

_FEW_SIZES = 12
_ROW = 4
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


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
    """The one size of a dim of many sizes that the last region has, where each region has one by its bounds: `2 < n`, `3 < n`
    and `n <= 4`, the sign of `while len(found) < n`. None otherwise."""
    for name in domain.names:
        pinned = [] if _has_few_sizes(domain, name) else [_only_size(region.condition, name) for region in regions]
        if pinned and None not in pinned and len(set(pinned)) == len(regions):
            return Compare("==", Ref(name), Number(pinned[-1] or 0))
    return None


def pinned_at_last(regions: Sequence[Region], domain: Domain) -> tuple[str, ...]:
    """The dims of many sizes of which each of the last few regions has one size, and no two of them the same sizes.

    So do those of a size that is made a number on one side of a branch, and so do the entries of a table of sizes.
    """
    last = regions[-_ROW:]
    names = [name for name in domain.names if not _has_few_sizes(domain, name)]
    sizes = [tuple(_only_size(region.condition, name) for name in names) for region in last]
    pinned = tuple(name for at, name in enumerate(names) if all(each[at] is not None for each in sizes))
    return pinned if len(regions) > _ROW and pinned and len(set(sizes)) == len(last) else ()


def _only_size(condition: Condition, name: str) -> int | None:
    """The only size that bounds of the dim leave; None where they leave others, or there are none."""
    low, high = -math.inf, math.inf
    for part in conjuncts(condition):
        if not isinstance(part, Compare) or dims_of(part) != (name,):
            continue
        left, op, right = part.left, part.op, part.right
        if isinstance(left, Number):
            left, op, right = right, _MIRRORED.get(op, op), left
        if not isinstance(left, Ref) or not isinstance(right, Number):
            continue
        if op in (">", ">=", "=="):
            low = max(low, right.value + (op == ">"))
        if op in ("<", "<=", "=="):
            high = min(high, right.value - (op == "<"))
    return int(low) if low == high else None


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
