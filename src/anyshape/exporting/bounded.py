"""Decide how far a file's promise goes, and at which sizes it is compared.

keep_exact            a domain ends where integers of the file leave 64 bits
end_where_compared    for a capture without proof it also ends at the largest sizes that can be compared
plan_comparisons      the sizes to compare within that domain
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.capture.overflow import Overflow, find_overflows
from anyshape.diagnose.comparison_notes import diagnose_ends
from anyshape.diagnose.consent import diagnose_end, diagnose_promise_beyond, diagnose_unbounded
from anyshape.domain import Compare, Condition, Number, Ref, Sizes, dims_of, holds, is_about
from anyshape.domain.intervals import MOST_ELEMENTS, limits_of
from anyshape.domain.telling_points import choose_telling, find_corner
from anyshape.explore import Costing, EachSize, Unfollowed, find_extent, spread_sizes
from anyshape.findings import Finding
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored, Extent
from anyshape.verify.request import Cost, SizePlan, plan_sizes

_MOST_ANSWERED = 40
_MOST_REFUSED = 200
_SHARE_OF_CORNER = 4  # one part in so many of the operations that are in proportion is for one call at a large corner
_SHARE_OF_NUMBERS = 2  # one part in so many of all work is for the numbers of the user's code


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A capture on the domain where a file computes its sizes exactly, and the rules that were added for it.

    `is_broken`: a declared range is not kept; `findings` then holds the error.
    """

    captured: Captured
    declared: Declared
    explored: Explored
    findings: tuple[Finding, ...] = ()
    rules: tuple[Rule, ...] = ()
    is_broken: bool = False


def keep_exact(captured: Captured, declared: Declared, explored: Explored, *, accept_narrower: bool = False) -> Bounded:
    """The capture, with open ranges ended where its size computations leave 64 bits; declared ones, too, if accepted."""
    promised = set() if accept_narrower else _promised(declared, explored)
    # The intervals are wider than the values: an end before the example would be of theirs.
    overflows = [
        replace(each, condition=None, cuts_promise=False)
        if each.condition is not None and not holds(each.condition, declared.example_sizes)
        else each
        for each in find_overflows(captured, declared.domain, promised)
    ]
    broken = tuple(
        diagnose_promise_beyond(each.text, each.source, each.condition)
        for each in overflows
        if each.cuts_promise and each.condition is not None
    )
    if broken:
        return Bounded(captured=captured, declared=declared, explored=explored, findings=broken, is_broken=True)
    rules = tuple(Rule(each.condition, "model", each.source) for each in overflows if each.condition is not None)
    narrower, narrower_explored = narrowed(declared, explored, rules)
    return Bounded(
        captured=_with_doubts(captured, [each for each in overflows if each.condition is None]),
        declared=narrower,
        explored=narrower_explored,
        findings=tuple(map(_finding, overflows)),
        rules=rules,
    )


def narrowed(declared: Declared, explored: Explored, rules: Sequence[Rule]) -> tuple[Declared, Explored]:
    """The declaration on the domain where these rules hold too, and the rules with those that exploring found."""
    conditions = [rule.condition for rule in rules]
    return (
        replace(declared, domain=declared.domain.narrowed(*conditions)),
        replace(explored, rules=(*explored.rules, *rules)),
    )


def _finding(overflow: Overflow) -> Finding:
    if overflow.condition is None:
        return diagnose_unbounded(overflow.source)
    return diagnose_end(overflow.text, overflow.source, overflow.condition)


def _with_doubts(captured: Captured, unbounded: list[Overflow]) -> Captured:
    """A capture with a value that no size bounds is not proved."""
    if not unbounded:
        return captured
    doubts = tuple(Guard(None, f"{each.text} fits into 64 bits", each.source, by_user=False) for each in unbounded)
    first = replace(captured.regions[0], guards=(*captured.regions[0].guards, *doubts))
    return replace(captured, regions=(first, *captured.regions[1:]))


def _promised(declared: Declared, explored: Explored) -> set[str]:
    """Dims whose upper end the user wrote, as a range or in a relation with other dims."""
    domain = declared.domain
    learned = {name for rule in explored.rules for name in dims_of(rule.condition)}
    ranged = {dim.name for dim in domain.dims if dim.declared and dim.max is not None and dim.name not in learned}
    own = [relation for relation in domain.relations if all(rule.condition != relation for rule in explored.rules)]
    related = {name for relation in own for name in dims_of(relation)}
    ends = limits_of(domain).ends if related else {}
    return ranged | {name for name in related if ends[name][1] < MOST_ELEMENTS}


@dataclass(frozen=True)
class Promised:
    """What a file can promise: the declaration up to the extent, and the findings about it.

    `each` has the dims of which each size is compared.
    """

    declared: Declared
    extent: Extent | None = None
    findings: tuple[Finding, ...] = ()
    rules: tuple[Rule, ...] = ()
    each: EachSize | None = None


def end_where_compared(
    declared: Declared,
    explored: Explored,
    cost: Costing,
    unfollowed: Mapping[str, Unfollowed],
    *,
    accept_narrower: bool,
) -> Promised:
    """For a capture without proof: as much of the declaration as can be compared."""
    added = [rule.condition for rule in explored.rules if rule.origin == "model"]
    if not explored.is_explained:  # no rule says where the module answers: as far as it was seen to
        seen = _ends_of(explored.answered)
        declared, added = replace(declared, domain=declared.domain.narrowed(*seen)), [*added, *seen]
    each = EachSize(declared, cost, unfollowed)
    extent = find_extent(declared, each, added)
    return Promised(
        replace(declared, domain=extent.domain),
        extent,
        diagnose_ends(extent.ends, accept_narrower=accept_narrower),
        tuple(Rule(condition, "compared") for condition in extent.conditions),
        each,
    )


def _ends_of(answered: Sequence[Sizes]) -> list[Condition]:
    """Each dim up to the largest of these sizes."""
    names = answered[0] if answered else ()
    return [Compare("<=", Ref(name), Number(max(sizes[name] for sizes in answered))) for name in names]


def plan_comparisons(
    captured: Captured, promised: Promised, explored: Explored, suspects: Sequence[Sizes], cost: Costing, seed: int
) -> SizePlan:
    """All sizes to compare, and those that are left out."""
    declared, extent = promised.declared, promised.extent
    limits = Cost(cost, cost.cheap, cost.affordable)
    plan = plan_sizes(declared, captured.guards, limits, seed)
    seen = [*(region.traced_at for region in captured.regions), *(part.sizes for part in captured.raising_regions)]
    inside = [sizes for sizes in seen if set(sizes) == set(declared.domain.names) and declared.domain.contains(sizes)]
    plan = plan.with_once(sizes for sizes in inside if not cost.excess(sizes))
    steps = [dict(sizes) for region in captured.regions for sizes in region.steps if declared.domain.contains(sizes)]
    steps = [sizes for sizes in steps if not cost.excess(sizes)]
    plan = plan.with_once(steps).with_decisive(steps)
    plan = plan.with_once(explored.far(declared.domain)).with_left_out(explored.left_out)
    if not explored.is_explained:
        plan = plan.with_once(explored.refused_in(declared.domain)[:_MOST_REFUSED])
    if explored.refused:  # few of the sizes that are proposed may be such as the module takes
        inside = [sizes for sizes in explored.answered if declared.domain.contains(sizes)]
        plan = plan.with_once(inside[: max(0, _MOST_ANSWERED - len(plan.sizes))])
    conditions = [guard.condition for guard in captured.guards if guard.status != "proved"]
    conditions += [region.condition for region in captured.regions]
    about = [each for each in conditions if each is not None and is_about(each, declared.domain.names)]
    plan = _with_decisive(plan, declared, about, cost)
    if captured.has_no_hidden_branch:
        return plan
    if extent is not None:
        plan = plan.with_once(extent.points).with_left_out(extent.left_out).with_decisive(extent.points)
        plan = plan.with_once(spread_sizes(declared, extent, cost))
    if promised.each is not None and extent is not None:
        plan = plan.with_once(filter(declared.domain.contains, promised.each.points(extent.largest)))
    inside = [point for point in suspects if declared.domain.contains(point)]
    return plan.with_affordable(inside, cost.excess, limits, cost.all_work // _SHARE_OF_NUMBERS)


def _with_decisive(plan: SizePlan, declared: Declared, about: Sequence[Condition], cost: Costing) -> SizePlan:
    """The plan with the sizes that no budget leaves out; if not all are in proportion to the export, with a large corner."""
    points = (*plan.sizes, *plan.once)
    plan = plan.with_decisive(choose_telling(points, declared.domain, about, cost.operations))
    if sum(map(cost.operations, points)) <= cost.in_proportion:
        return plan
    corner = find_corner(declared.domain, cost.operations, cost.in_proportion // _SHARE_OF_CORNER)
    return plan.with_once(corner).with_decisive(corner)
