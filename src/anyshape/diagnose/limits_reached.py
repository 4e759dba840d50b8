"""Limits that an export reached: time, memory, and the 64 bits of a file's integers.

a rung has used its share of the time                ->  AS130
the whole export has used its time                   ->  AS140: what was found until then, and what was not tried
not enough memory for a call of the model            ->  AS141
an open dim ends where a size computation overflows  ->  AS137, a warning
a declared range goes beyond that                    ->  AS138, an error
no bound of a dim keeps the computation inside       ->  AS139, a warning: the capture is not proved
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.domain import Condition, format_condition, format_sizes
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.records.export import Attempt

_FIX = "give it more: time_limit=1200 (--time-limit 20m)."


def diagnose_time(stage: str) -> Finding:
    """A rung that had its share of the time and came to nothing."""
    return Finding(
        code="AS130",
        name="rung-out-of-time",
        reason=Reason.RUNG_OUT_OF_TIME,
        what="this way of capturing the model took more than its share of time_limit.",
        why=f"it was ended while {stage or 'it began'}; a rung gets half of the time that is left.",
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


_MORE_MEMORY = "free some memory, or give a smaller example."


def diagnose_memory(sizes: Mapping[str, int], source: Source | None, example: Mapping[str, int]) -> Finding:
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
        why="Python computes with integers of any size, a file with 64 bits (and 53 where floats are involved).",
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
