"""A file that is wrong for integers below all that the user's inputs have: told, with the bound."""

from __future__ import annotations

from anyshape.domain.bounded_values import lowest_text
from anyshape.findings import Finding, Severity
from anyshape.records.verdict import Verdict


def diagnose_lowest(verdict: Verdict) -> tuple[Finding, ...]:
    """One warning for each input whose integers are promised from a number on."""
    return tuple(
        Finding(
            code="AS314",
            name="integers-bounded",
            severity=Severity.WARNING,
            what=f"the file is right for values of {name!r} from {low} on; below, it answers otherwise than the model.",
            why=f"no value that the inputs gave is below {low}, and the contract promises none below it.",
            fix=f'declare which values occur: values={{"{name}": "{lowest_text(name, low)}"}}.',
            narrows=True,
        )
        for name, low in verdict.lowest.items()
    )
