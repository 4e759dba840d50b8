"""Promises smaller than declared: lowered by the user, or limited by time, memory and the 64 bits of a file's integers.

not compared, verify="none"                          ->  AS317, a warning; AS426 where that needs a proved capture
a guard became a rule by accept_narrower=True        ->  AS108, a warning
a rung has used its share of the time                ->  AS130
the whole export has used its time                   ->  AS140: what was found until then, and what was not tried
not enough memory for a call of the model            ->  AS141
an open dim ends where a size computation overflows  ->  AS137, a warning
a declared range goes beyond that                    ->  AS138, an error
no bound of a dim keeps the computation inside       ->  AS139, a warning: the capture is not proved
"""

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
    format_sizes,
    holds,
    smallest_point,
)
from anyshape.findings import REFUSED_SIZES, Finding, Reason, Remedy, Severity, Source
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard
from anyshape.records.explored import Explored
from anyshape.records.export import Attempt

_MOST_SHOWN = 3
_LOOKED_AT = 16
_FIX = "give it more: time_limit=1200 (--time-limit 20m)."
_MORE_MEMORY = "free some memory, or give a smaller example."


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


def diagnose_time(stage: str) -> Finding:
    """A rung that had its share of the time and came to nothing."""
    return Finding(
        code="AS130",
        name="rung-out-of-time",
        reason=Reason.RUNG_OUT_OF_TIME,
        what="this way of capturing the model took more than its share of time_limit.",
        why=f"it was ended while {stage or 'it began'}; a rung gets half of the time that is left, as CPU time.",
        fix=_FIX,
        is_fix_untried=True,
    )


def diagnose_out_of_time(seconds: float, stage: str, attempts: Sequence[Attempt]) -> Finding:
    """An export that was ended by its time limit."""
    found = "; ".join(f"{attempt.strategy}: {_outcome(attempt)}" for attempt in attempts)
    return Finding(
        code="AS140",
        name="out-of-time",
        what=f"the export did not end within {seconds:g} s.",
        why=f"it was ended while {stage or 'it began'}. {found or 'No rung of the ladder was tried yet'}.",
        fix=_FIX,
        is_fix_untried=True,
    )


def _outcome(attempt: Attempt) -> str:
    compared = f", {len(attempt.verdict.tried)} sizes compared" if attempt.verdict is not None else ""
    codes = ", ".join(dict.fromkeys(f"{finding.code} {finding.name}" for finding in attempt.findings))
    return f"{codes or 'no finding'}{compared}"


def diagnose_lack_of_memory(sizes: Mapping[str, int], source: Source | None, example: Mapping[str, int]) -> Finding:
    """A call that takes more memory than a quarter of what is free: nothing can be learned of these sizes here."""
    ends = {name: max(example[name], size // 2) for name, size in sizes.items() if size > example[name]}
    rules = tuple(f"{name} <= {end}" for name, end in ends.items())
    return Finding(
        code="AS141",
        name="out-of-memory",
        reason=Reason.OUT_OF_MEMORY,
        what=f"the model needs more memory than there is at {_written(sizes)}.",
        where=source,
        why="one call may take a quarter of the memory that is free, or 1 GiB where that is more.",
        fix=f"declare ends that keep these sizes out: where={list(rules)!r}" if rules else _MORE_MEMORY,
        remedy=Remedy(where=rules) if rules else None,
        is_fix_untried=bool(rules),
        alternative="free some memory." if rules else "",
        sizes=dict(sizes),
    )


def _written(sizes: Mapping[str, int]) -> str:
    return format_sizes(sizes) or "its only sizes"


def diagnose_end(text: str, source: Source | None, condition: Condition) -> Finding:
    """An open range that ends where the integers of a file do."""
    rule = format_condition(condition)
    return Finding(
        code="AS137",
        name="range-ends-at-integers",
        reason=Reason.INTEGERS_END,
        about=(text,),
        severity=Severity.WARNING,
        what=f"the file holds where {rule}: beyond it {_short(text)} does not fit.",
        where=source,
        why="Python computes with integers of any size, a file with 64 bits (53 where floats are involved, 24 in float32).",
        fix=f"take the remainder earlier, so that values stay small; or declare the end: where=[{rule!r}]",
        narrows=True,
    )


def diagnose_promise_beyond(text: str, source: Source | None, condition: Condition) -> Finding:
    """A declared range on which the integers of a file are not enough."""
    rule = format_condition(condition)
    return Finding(
        code="AS138",
        name="integers-too-large",
        reason=Reason.INTEGERS_TOO_LARGE,
        about=(text,),
        what=f"{_short(text)} does not fit into a file's integers on all declared sizes.",
        where=source,
        why=f"it fits where {rule}. Python's integers have no end; a file's have 64 bits (53 in floats).",
        fix=f"where=[{rule!r}], accept_narrower=True, or take the remainder earlier, so that values stay small.",
        remedy=Remedy(where=(rule,)),
        is_fix_untried=True,
    )


def diagnose_unbounded(source: Source | None) -> Finding:
    """A value that may leave 64 bits for a reason that is no size of an input."""
    return Finding(
        code="AS139",
        name="integers-unbounded",
        severity=Severity.WARNING,
        what="a number that is computed from values may leave 64 bits: there the file is wrong.",
        where=source,
        why="Python computes with integers of any size, a file with 64 bits; no rule on sizes bounds this number.",
        fix="take the remainder earlier, so that the values on the way stay small.",
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
