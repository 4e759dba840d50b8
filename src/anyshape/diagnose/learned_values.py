"""Bounds of values that were learned by trying: told, since the contract promises nothing beyond them."""

from __future__ import annotations

from collections.abc import Mapping

from anyshape.findings import Finding, Severity


def diagnose_learned_values(texts: Mapping[str, str], order: str) -> tuple[Finding, ...]:
    """One warning for all inputs whose values are bounded; `order` is that of the values, in words."""
    if not texts:
        return ()
    takes = " and ".join(texts.values()) + (f", {order}" if order else "")
    declared = ", ".join(f'"{name}": "{text}"' for name, text in texts.items())
    return (
        Finding(
            code="AS315",
            name="values-learned",
            severity=Severity.WARNING,
            what=f"the model takes {takes}: the file is promised for these values.",
            why="it raises for other values.",
            fix=f"declare them: values={{{declared}}}, or give a function of sizes, which makes legal values.",
            narrows=True,
        ),
    )
