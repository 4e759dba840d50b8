"""target="onnxruntime" had no effect: the file of onnxruntime's optimizer does not exist, or is not right (AS423)."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.diagnose.differences import say_failure
from anyshape.diagnose.wording import first_line, say_sizes
from anyshape.findings import Finding, Severity
from anyshape.records.verdict import Verdict


def diagnose_custom_nodes(needs: Sequence[str]) -> Finding:
    """The optimizer does not load files with custom nodes."""
    return _unfused(f"onnxruntime's optimizer does not load a file with the custom node {needs[0]}.")


def diagnose_rejected(message: str) -> Finding:
    """The optimizer wrote no file, for this reason."""
    return _unfused(f"onnxruntime's optimizer wrote no file: {first_line(message)}")


def diagnose_changed(verdict: Verdict) -> Finding:
    """The optimized file is wrong where the file before it is right."""
    failure = verdict.smallest_failure or next(iter(verdict.failures), None)
    if failure is None:
        return _unfused("the file of onnxruntime's optimizer could be compared at no size.")
    why = f"onnxruntime's optimizer changed what the file returns: at {say_sizes(failure.sizes)} {say_failure(failure)}"
    return _unfused(why)


def _unfused(why: str) -> Finding:
    return Finding(
        code="AS423",
        name="not-fused",
        severity=Severity.WARNING,
        what="target='onnxruntime' had no effect: the file has no fused operators.",
        why=why,
        fix="use the file as it is: it was verified, and onnxruntime fuses what it can when it loads it.",
        alternative="leave target out.",
    )
