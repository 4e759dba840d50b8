"""Findings about verify="none".

the file was not compared with the model                      ->  AS317, a warning
the capture is not proved, so a file needs comparisons        ->  AS426
"""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.domain import format_condition
from anyshape.findings import Finding, Reason, Severity
from anyshape.records.captured import Captured
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
