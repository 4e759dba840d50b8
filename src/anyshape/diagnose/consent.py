"""The user's word that a smaller domain will do: what would break the promise becomes a warning that says what is left.

AS102, AS103 with accept_narrower     ->  the same, as warnings; the contract is what the model keeps
a guard that cuts the domain          ->  AS108, a warning, and the domain where the guard holds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from anyshape.domain import Compare, Condition, Number, Ref, all_of, dims_of, format_condition, holds
from anyshape.findings import REFUSED_SIZES, Finding, Severity
from anyshape.records.captured import Guard
from anyshape.records.explored import Explored


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
