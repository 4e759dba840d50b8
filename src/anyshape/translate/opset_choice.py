"""The opsets that anyshape writes, and what a file of an older one does without."""

from __future__ import annotations

from anyshape.findings import Finding, Severity, UsageError
from anyshape.findings.choices import check_number

OLDEST_OPSET = 11
NEWEST_OPSET = 23
DEFAULT_OPSET = 18
OLDEST_ENFORCING_OPSET = 13


def check_opset(opset: int, enforce_values: bool = False) -> None:
    """Raise UsageError unless anyshape writes the opset, and a file of it can check values where that is asked for."""
    check_number("opset", opset, DEFAULT_OPSET, whole=True)
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise UsageError(
            Finding(
                code="AS035",
                name="opset",
                what=f"opset {opset} is not one that anyshape writes.",
                why=f"it writes opsets {OLDEST_OPSET} to {NEWEST_OPSET}; {DEFAULT_OPSET} unless told otherwise.",
                fix=f"opset={min(max(opset, OLDEST_OPSET), NEWEST_OPSET)}",
            )
        )
    if enforce_values and opset < OLDEST_ENFORCING_OPSET:
        raise UsageError(
            Finding(
                code="AS428",
                name="opset-without-checks",
                what=f"enforce_values=True needs opset {OLDEST_ENFORCING_OPSET} or newer, and the opset is {opset}.",
                why="the nodes that check values cannot be written in older opsets.",
                fix=f"opset={OLDEST_ENFORCING_OPSET}",
                alternative="leave enforce_values out: anyshape.load checks the values of each call.",
            )
        )


def sizes_not_enforced(opset: int) -> Finding:
    """AS427, a warning: the nodes by which a graph refuses sizes outside its contract cannot be written in this opset."""
    return Finding(
        code="AS427",
        name="sizes-not-enforced",
        severity=Severity.WARNING,
        what=f"a file of opset {opset} does not itself refuse sizes outside its contract.",
        why=f"the nodes that check sizes need opset {OLDEST_ENFORCING_OPSET} or newer.",
        fix=f"opset={OLDEST_ENFORCING_OPSET}",
        alternative='enforce="load" leaves the checks to anyshape.load, without this warning.',
    )
