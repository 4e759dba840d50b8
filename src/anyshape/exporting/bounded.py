"""Between capture and translation: end the domain where the integers of a file end, or report that it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyshape.capture.overflow import Overflow, find_overflows
from anyshape.diagnose.limits_reached import diagnose_end, diagnose_promise_beyond, diagnose_unbounded
from anyshape.domain import dims_of
from anyshape.domain.intervals import MOST_ELEMENTS, limits_of
from anyshape.findings import Finding
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A capture on the domain where a file computes its sizes exactly, and the rules that were added for it.

    `is_broken` says that a declared range is not kept: `findings` then holds the error.
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
    overflows = find_overflows(captured, declared.domain, promised)
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
