"""A file that answers otherwise than the model for NaN in its inputs: told, and no error."""

from __future__ import annotations

from anyshape.diagnose.wording import say_sizes
from anyshape.findings import Finding, Severity
from anyshape.records.verdict import Failure, Mismatch, Verdict


def diagnose_nan(verdict: Verdict) -> tuple[Finding, ...]:
    """One note for the first difference."""
    return tuple(
        Finding(
            code="AS159",
            name="nan-differs",
            severity=Severity.NOTE,
            what="for NaN in its inputs the file answers otherwise than the model.",
            why=f"at {say_sizes(failure.sizes)}: {_difference(failure)}",
            fix="look for NaN before the call, where it can occur.",
            sizes=dict(failure.sizes),
        )
        for failure in verdict.at_nan[:1]
    )


def _difference(failure: Failure) -> str:
    difference = failure.difference
    if difference is None:
        return "the model answers, and onnxruntime raises."
    if difference.mismatch is Mismatch.NAN:
        return f"NaN is at other places of output {difference.output!r}; ONNX leaves open what MaxPool and others do with it."
    return f"output {difference.output!r} differs; expected {difference.expected}, actual {difference.actual}."
