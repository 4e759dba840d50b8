"""The time is over: what was found until then, and what was not tried.

a rung has used its share of the time     ->  AS130
the whole export has                      ->  AS140
"""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.findings import Finding, Reason
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
