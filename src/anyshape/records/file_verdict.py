"""The result of `anyshape.check`: a verdict about an existing file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from anyshape.findings import Finding
from anyshape.records.reportable import Reportable, Reporter
from anyshape.records.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class FileVerdict(Verdict, Reportable):
    """A verdict with the file that it is about, and all findings, warnings and notes among them.

    `signed`: the contract in the file is about the file as it is now.
    """

    path: Path = field(default_factory=Path)
    findings: tuple[Finding, ...] = ()
    signed: bool = False


def about_file(
    verdict: Verdict, path: Path, findings: tuple[Finding, ...], reporter: Reporter, *, signed: bool = False
) -> FileVerdict:
    """The verdict as one about a file."""
    facts = {each.name: getattr(verdict, each.name) for each in fields(Verdict)}
    return FileVerdict(**facts, path=path, findings=findings, signed=signed, reporter=reporter)
