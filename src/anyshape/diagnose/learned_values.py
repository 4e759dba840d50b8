"""Bounds of integers that were learned by trying: told, since the contract promises nothing beyond them."""

from __future__ import annotations

from anyshape.explore.legal_values import LegalValues
from anyshape.findings import Finding, Severity


def diagnose_learned_values(learned: LegalValues | None) -> tuple[Finding, ...]:
    """One warning for all inputs whose values are bounded."""
    if learned is None:
        return ()
    texts = " and ".join(learned.texts.values())
    order = f", {learned.order}" if learned.order else ""
    declared = ", ".join(f'"{name}": "{text}"' for name, text in learned.texts.items())
    return (
        Finding(
            code="AS315",
            name="values-learned",
            severity=Severity.WARNING,
            what=f"the model takes {texts}{order}: the file is promised for these values.",
            why="it refuses other integers, and an example does not say which are legal.",
            fix=f"declare them: values={{{declared}}}, or give a function of sizes, which makes legal values.",
        ),
    )
