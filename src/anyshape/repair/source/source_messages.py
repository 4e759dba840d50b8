"""Findings about modules that are repaired: the edits that were made, or why none were."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.findings import Finding, Severity, Source
from anyshape.records.repaired import SourceRepair

_YOURSELF = "change the line yourself, or give the module as it should be: repaired=..."


def module_repaired(repair: SourceRepair) -> Finding:
    """AS506: the file is of the edited source."""
    lines = "\n".join(str(edit) for edit in repair.edits)
    where = f" in {repair.folder}" if repair.folder else ""
    return Finding(
        code="AS506",
        name="module-repaired",
        severity=Severity.WARNING,
        what=f"the model answers at one size; the file is of its source with {_count(len(repair.edits))}.",
        excerpt=lines,
        where=repair.edits[0].source,
        why=";\n".join(repair.evidence) + ".",
        fix=f"apply result.repair.diff (--write-diff FILE) to your source with `git apply`{where}:\n{repair.diff.rstrip()}",
    )


def _count(edits: int) -> str:
    return "1 edit" if edits == 1 else f"{edits} edits"


def not_repaired(where: Source | None, why: str, suggestion: str = "") -> Finding:
    """AS507: no edit was found that makes the module follow its sizes."""
    return Finding(
        code="AS507",
        name="not-repaired",
        what="no edit of the source was found that is sure to be right.",
        where=where,
        why=why,
        fix=suggestion or _YOURSELF,
        alternative=_YOURSELF if suggestion else "",
        is_fix_untried=False,
    )


def source_readings(where: Source, text: str, readings: Sequence[str], why: str) -> Finding:
    """AS502: what a line of the source has at the example's size can be read in several ways."""
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"{text!r} has {len(readings)} readings that fit: {' or '.join(readings)}.",
        where=where,
        why=why,
        fix="write the one that you mean into the line.",
        alternative="give an example whose sizes differ from all other numbers, or the module as it should be: repaired=...",
    )


def example_too_small(dim: str, size: int) -> Finding:
    """AS503: a dim so small in the example that its size has no meaning."""
    return Finding(
        code="AS503",
        name="size-too-small",
        what=f"dim {dim!r} has the size {size} in the example, which other numbers have as well.",
        why="the rows along it are not independent, so that nothing confirms a reading.",
        fix=f"write the model for a larger {dim}, or give the module as it should be: repaired=...",
    )


def source_repair_differs(where: Source | None, why: str) -> Finding:
    """AS504: the evidence is against the edits."""
    return Finding(
        code="AS504",
        name="repair-differs",
        what="the edited source does not answer as it should.",
        where=where,
        why=why,
        fix=_YOURSELF,
    )
