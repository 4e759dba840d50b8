"""A smaller domain than declared, which the user accepts: what would break the promise becomes a warning.

AS102, AS103 with accept_narrower     ->  the same, as warnings; the contract is what the model keeps
a guard that cuts the domain          ->  AS108, a warning, and the domain where the guard holds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from anyshape.domain import (
    Compare,
    Condition,
    Dim,
    Domain,
    Number,
    Ref,
    Undecided,
    all_of,
    dims_of,
    format_condition,
    holds,
    smallest_point,
)
from anyshape.findings import REFUSED_SIZES, Finding, Severity
from anyshape.inputs import Declared
from anyshape.records.captured import Guard
from anyshape.records.explored import Explored

_LOOKED_AT = 16


def declared_dims(domain: Domain) -> set[str]:
    """The dims that a bound or a relation of the user's mentions."""
    related = {name for relation in domain.relations for name in dims_of(relation)}
    return related | {dim.name for dim in domain.dims if dim.declared}


def may_stay(declared: Declared, name: str) -> bool:
    """Whether a dim may have one size: the user gave its axes no name, no range and no relation."""
    return name in declared.unnamed and name not in declared_dims(declared.domain)


def is_cut(name: str, kept: Domain, dim: Dim) -> bool:
    """Whether a declared dim has a size that no sizes of the other dims go with: its ends, and some sizes between."""
    high = None if dim.max is None else dim.largest_up_to(dim.max)
    last = dim.smallest + _LOOKED_AT * dim.multiple if high is None else high
    sizes = range(dim.smallest, last + 1, dim.multiple)[:_LOOKED_AT]
    return any(_is_empty_at(kept, name, size) for size in dict.fromkeys([*sizes, last]))


def _is_empty_at(domain: Domain, name: str, size: int) -> bool:
    try:
        return smallest_point(domain, Compare("==", Ref(name), Number(size))) is None
    except Undecided:
        return False


def accept_refusals(findings: Iterable[Finding]) -> list[Finding]:
    """Findings about sizes that the module refuses, as warnings. A rule that is their fix is tried by this export itself."""
    return [
        replace(
            finding,
            severity=Severity.WARNING,
            narrows=True,
            is_fix_untried=finding.is_fix_untried and not (finding.remedy and finding.remedy.where),
        )
        if finding.reason in REFUSED_SIZES
        else finding
        for finding in findings
    ]


def pinned_condition(explored: Explored) -> Condition:
    """Dims that the module answers at one size only, held there."""
    return _held(explored.pinned)


def narrower_condition(guard: Guard, example: Mapping[str, int]) -> Condition:
    """Where the program holds: the guard, or the example's own sizes where the guard is about others."""
    if guard.condition is not None and holds(guard.condition, example):
        return guard.condition
    names = dims_of(guard.condition) if guard.condition is not None else tuple(example)
    return _held({name: example[name] for name in names})


def narrowed_by_consent(guard: Guard, condition: Condition) -> Finding:
    """What the user gets less than they declared, and why."""
    return Finding(
        code="AS108",
        name="narrowed-by-consent",
        severity=Severity.WARNING,
        what=f"the file holds only where {format_condition(condition)}, as you accepted.",
        where=guard.source,
        why="the captured program takes another path elsewhere.",
        fix="leave accept_narrower out to have this refused.",
        narrows=True,
    )


def _held(sizes: Mapping[str, int]) -> Condition:
    return all_of(Compare("==", Ref(name), Number(size)) for name, size in sizes.items())
