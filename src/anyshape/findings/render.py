"""The one renderer of findings: plain text, no colours, the same in an exception, a log and a report."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import indent

from anyshape.findings.finding import Finding

_LABELS = (("Where", "where"), ("Why", "why"), ("Fix", "fix"), ("Or", "alternative"), ("Replay", "replay"))
_MARGIN = " " * 10


def render(finding: Finding) -> str:
    """`CODE name: sentence`, then the labelled lines that have something to say."""
    lines = [f"{finding.code} {finding.name}: {finding.what}"]
    if finding.excerpt:
        lines.append(indent(finding.excerpt, "    "))
    for label, attribute in _LABELS:
        value = getattr(finding, attribute)
        if value:
            first, *rest = str(value).splitlines()
            untried = " (not tried)" if attribute == "fix" and finding.is_fix_untried else ""
            lines.append(f"  {label + untried + ':':7} {first}")
            lines.extend(_MARGIN + line for line in rest)
    return "\n".join(lines)


def render_all(findings: Iterable[Finding]) -> str:
    """Findings one under the other, the heaviest first, an empty line between."""
    weight = {"error": 0, "warning": 1, "note": 2}
    ordered = sorted(findings, key=lambda finding: weight[finding.severity.value])
    return "\n\n".join(render(finding) for finding in ordered)
