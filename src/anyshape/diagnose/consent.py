"""Promises that the user lowers: a smaller domain than declared, which becomes a warning, and verify="none"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from anyshape.findings import REFUSED_SIZES, Finding, Reason, Severity
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard
from anyshape.records.explored import Explored
from anyshape.records.export import Attempt

_MOST_SHOWN = 3


def not_verified() -> Finding:
    """The warning that belongs to every file that was not compared."""
    return Finding(
        code="AS317",
        name="not-verified",
        severity=Severity.WARNING,
        what="the file was not compared with the model: verify='none'.",
        why="the conditions of its capture are proved; that its nodes return what the model returns is not tested.",
        fix="anyshape check m.onnx --model model.py --sign      compares the file, and makes its contract a kept one",
        alternative="leave verify out, or verify='quick'.",
    )


def with_need_of_comparing(attempts: Sequence[Attempt], other: str) -> tuple[Attempt, ...]:
    """The attempts; where no file came of them, with the finding that the rung `other` is not tried without comparisons.

    Of all rungs only the symbolic one gives captures that are proved.
    """
    reasons = (Reason.NEEDS_COMPARING, Reason.VALUES_DECIDE_ELSEWHERE)
    if any(attempt.is_right or any(map(attempt.has, reasons)) for attempt in attempts):
        return tuple(attempts)
    return (*attempts, Attempt(other, (needs_comparing(other, before=attempts),)))


def needs_comparing(strategy: str, captured: Captured | None = None, before: Sequence[Attempt] = ()) -> Finding:
    """The capture is not proved, so the file would promise nothing without comparisons.

    `captured` is the capture, if there is one; `before` are the rungs that were tried first.
    """
    failed = [f"the rung {each.strategy!r} ended with {_first(each)}. " for each in before if each.findings]
    return Finding(
        code="AS426",
        name="needs-comparing",
        reason=Reason.NEEDS_COMPARING,
        what="verify='none' needs a capture that is proved, and that of this model is not.",
        why=f"{''.join(failed)}a file of the rung {strategy!r} is promised as far as it was compared: "
        f"without comparisons, nowhere.{_unproved(captured)}",
        fix="leave verify out, or verify='quick'.",
    )


def _first(attempt: Attempt) -> str:
    finding = attempt.findings[0]
    return f"{finding.code} {finding.name}"


def _unproved(captured: Captured | None) -> str:
    """The conditions of a capture that the domain does not imply; as few as fit into a line."""
    guards = [guard for guard in captured.guards if guard.status != "proved"] if captured is not None else []
    texts = dict.fromkeys(format_condition(guard.condition) if guard.condition else guard.text for guard in guards)
    shown = [f"'{text}'" for text in texts][:_MOST_SHOWN]
    further = f" and {len(texts) - len(shown)} more" if len(texts) > len(shown) else ""
    return f" Not proved: {', '.join(shown)}{further}." if shown else ""


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
