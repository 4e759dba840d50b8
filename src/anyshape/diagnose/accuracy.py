"""A file that computes the right formula and rounds worse than the model: told, with its figure."""

from __future__ import annotations

from anyshape.diagnose.wording import say_sizes
from anyshape.findings import Finding, Severity
from anyshape.records.verdict import Verdict


def diagnose_rounding(verdict: Verdict) -> tuple[Finding, ...]:
    """One note for each output that is more than one tolerance off and right in double precision."""
    return tuple(
        Finding(
            code="AS313",
            name="rounds-otherwise",
            severity=Severity.NOTE,
            what=f"output {each.output!r} is off by more than its tolerance, by rounding alone.",
            why=f"by {each.tolerances:.3g} tolerances at {say_sizes(each.sizes)}; in double precision file and model agree.",
            fix="nothing, if that does not matter to you; rtol= and atol= replace the tolerance by your own.",
            sizes=each.sizes,
        )
        for each in verdict.rounded
    )
