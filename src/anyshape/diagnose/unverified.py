"""Findings about verify="none".

the file was not compared with the model                      ->  AS317, a warning
the capture is not proved, so a file needs comparisons        ->  AS426
"""

from __future__ import annotations

from anyshape.findings import Finding, Reason, Severity


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


def needs_comparing(strategy: str) -> Finding:
    """The capture is not proved, so the file would promise nothing without comparisons."""
    return Finding(
        code="AS426",
        name="needs-comparing",
        reason=Reason.NEEDS_COMPARING,
        what="verify='none' needs a capture that is proved, and that of this model is not.",
        why=f"a file of the rung {strategy!r} is promised as far as it was compared: without comparisons, nowhere.",
        fix="leave verify out, or verify='quick'.",
    )
