"""A computation with sizes that leaves what a file computes exactly, 64-bit integers.

an open dim ends before that             ->  AS137, a warning
a declared range goes beyond it          ->  AS138, an error
no bound of a dim keeps it inside        ->  AS139, a warning: the capture is not proved
"""

from __future__ import annotations

from anyshape.domain import Condition, format_condition
from anyshape.findings import Finding, Reason, Remedy, Severity, Source


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
