"""Functions of a torch.cond that no compared values lead to, and what comparing them by themselves came to."""

from __future__ import annotations

from anyshape.findings import Finding, Severity
from anyshape.records.verdict import CondSide, Verdict


def diagnose_cond_sides(verdict: Verdict) -> tuple[Finding, ...]:
    """An error for each function that differs, a warning for each that could not be compared."""
    return tuple(
        _differs(side) if side.failure is not None else _not_compared(side)
        for side in verdict.sides
        if side.failure is not None or not side.is_compared
    )


def _differs(side: CondSide) -> Finding:
    failure = side.failure
    sizes = ", ".join(f"{name}={size}" for name, size in failure.sizes.items()) if failure is not None else ""
    return Finding(
        code="AS135",
        name="cond-function-wrong",
        what=f"the {_place(side)} function of a torch.cond gives other values in the file.",
        where=side.source,
        why=f"no values of the inputs led to it; compared by itself, it differs at {sizes}.",
        fix="write that function with other operators, or mend the translation of yours that it uses.",
    )


def _not_compared(side: CondSide) -> Finding:
    return Finding(
        code="AS136",
        name="cond-function-not-compared",
        severity=Severity.WARNING,
        what=f"the {_place(side)} function of a torch.cond is in the file, and was not compared.",
        where=side.source,
        why="no values of the inputs led to it, and the function raises for these values.",
        fix="give a function of sizes that draws values which lead to either function.",
    )


def _place(side: CondSide) -> str:
    return "first" if side.side else "second"
