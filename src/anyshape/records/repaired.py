"""What was changed in the user's source so that a model follows its sizes, and what confirms it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from anyshape.findings import Source


@dataclass(frozen=True)
class SourceEdit:
    """One expression of a line, what is written in its place, and why."""

    source: Source
    before: str
    after: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source.file}:{self.source.line}: {self.before} -> {self.after} ({self.reason})"


@dataclass(frozen=True, kw_only=True)
class SourceRepair:
    """`diff` is a unified diff for `git apply` in the folder `folder`; the file was exported from the edited source."""

    edits: tuple[SourceEdit, ...]
    evidence: tuple[str, ...]
    diff: str
    folder: str = ""

    def stripped(self) -> SourceRepair:
        """The same without lines of the user's code."""
        return replace(self, edits=(), diff="", folder="")

    def as_plain(self) -> dict[str, Any]:
        """For JSON, and for the metadata of the file."""
        edits = [
            {
                "file": edit.source.file,
                "line": edit.source.line,
                "before": edit.before,
                "after": edit.after,
                "reason": edit.reason,
            }
            for edit in self.edits
        ]
        return {"edits": edits, "evidence": list(self.evidence), "diff": self.diff}
