"""Where a program's computation with sizes stays exact in a file: its integers have 64 bits, Python's have no end.

n**7 % 11      right in Python at every n; in a file where n**7 < 2**63    ->    the rule n <= 511
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from anyshape.capture.size_steps import Step, element_counts, first_overflow, fits, steps_of
from anyshape.domain import (
    All,
    AnyOf,
    Compare,
    Condition,
    Domain,
    Expr,
    Not,
    Number,
    Op,
    Ref,
    all_of,
)
from anyshape.domain.intervals import INT64, Limits, largest_that, limits_of
from anyshape.domain.simplify import polynomial_of
from anyshape.findings import Source
from anyshape.records.captured import Captured, Region

_MOST_RULES = 64


@dataclass(frozen=True)
class Overflow:
    """A value that a file cannot compute exactly on all of the domain.

    `condition` is where it can, None where no bound of the dims gives that; `cuts_promise` says that the condition takes
    away sizes that the user declared.
    """

    text: str
    source: Source | None
    condition: Condition | None
    cuts_promise: bool


def find_overflows(captured: Captured, domain: Domain, promised: Collection[str]) -> tuple[Overflow, ...]:
    """The values of all regions that can leave what a file computes exactly, each with the rule that keeps it inside.

    `promised` are the dims whose upper end the user has declared: the others are cut first.
    """
    found: list[Overflow] = []
    for region in captured.regions:
        inside = domain.narrowed(*(each.condition for each in found if each.condition is not None))
        found.extend(_of_region(region, inside.narrowed(region.condition), promised))
    return tuple(found)


def _of_region(region: Region, domain: Domain, promised: Collection[str]) -> Iterator[Overflow]:
    steps = (*steps_of(region.program, region.symbols), *_written(region.condition))
    if not steps:
        return
    limits = limits_of(domain, element_counts(region.program, region.symbols))
    cuts: dict[tuple[str, ...], Overflow] = {}
    for _ in range(_MOST_RULES):
        step = first_overflow(steps, limits)
        if step is None:
            break
        names = [name for name in domain.names if name in step.dims]
        free = [name for name in names if name not in promised]
        cut = _cut(step, free, limits) or _cut(step, names, limits)
        if cut is None:
            yield Overflow(step.text, step.source, None, cuts_promise=False)
            return
        limits, key, condition = cut
        cuts[key] = Overflow(step.text, step.source, condition, any(name in promised for name in key))
    yield from cuts.values()


def _cut(step: Step, names: Sequence[str], limits: Limits) -> tuple[Limits, tuple[str, ...], Condition] | None:
    """The limits at which the step stays exact, the dims that are cut, and the rule: an end of one dim, of the product of
    several, or the same end for each of them."""
    if not names:
        return None
    key = tuple(names)
    if len(names) > 1:
        least, most = (prod(limits.ends[name][end] for name in names) for end in (0, 1))
        most = min(most, INT64[1])  # the file computes the product, too
        high = largest_that(lambda end: fits([step], limits.with_product(key, end)), least, most)
        if high is not None and high > least:
            product = _product(names)
            return limits.with_product(key, high), key, Compare("<=", product, Number(high))
    low, most = max(limits.ends[name][0] for name in names), max(limits.ends[name][1] for name in names)
    high = largest_that(lambda end: fits([step], limits.with_end(names, end)), low, most)
    if high is None:
        return None
    return limits.with_end(names, high), key, all_of(Compare("<=", Ref(name), Number(high)) for name in names)


def _product(names: Sequence[str]) -> Expr:
    product: Expr = Ref(names[0])
    for name in names[1:]:
        product = product * Ref(name)
    return product


def _written(condition: Condition) -> Iterator[Step]:
    """The steps by which a file finds out whether a condition holds."""
    if isinstance(condition, (All, AnyOf)):
        for part in condition.parts:
            yield from _written(part)
    elif isinstance(condition, Not):
        yield from _written(condition.part)
    elif isinstance(condition, Compare):
        for side in (condition.left, condition.right):
            yield from _written_expr(side)


def _written_expr(expr: Expr) -> Iterator[Step]:
    if isinstance(expr, Op):
        for arg in expr.args:
            yield from _written_expr(arg)
        yield Step("same", (Step("size", expr=expr, terms=polynomial_of(expr)),), expr=expr)
