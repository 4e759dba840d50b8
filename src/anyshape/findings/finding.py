"""A finding: one thing that stands between a model and its promise, as facts.

A finding holds facts, `render` alone turns them into text; nobody parses our text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from anyshape.findings.paths import shorten_paths


class Severity(Enum):
    """How much a finding weighs: only an ERROR breaks a promise."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Source:
    """A line of the user's own code."""

    file: str
    line: int
    function: str = ""
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        if self.function:
            place += f", in {self.function}"
        return f"{place}:   {self.text}" if self.text else place


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong with what, where, why, and what to do about it.

    `code` and `name` come from the catalogue and never change meaning. `what` is one sentence in the user's own words,
    and stands alone; the others are the labelled lines under it, each left out when empty. `source` is the user's line
    where `where` speaks of something else, such as a node of the file. `narrows`: the contract is smaller than the declared
    domain for this reason, and `anyshape.export` issues a warning.
    """

    code: str
    name: str
    what: str
    severity: Severity = Severity.ERROR
    excerpt: str = ""
    where: Source | str | None = None
    why: str = ""
    fix: str = ""
    alternative: str = ""
    replay: str = ""
    sizes: Mapping[str, int] | None = field(default=None, hash=False)
    source: Source | None = None
    narrows: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        # Messages of torch and Python quote absolute paths.
        object.__setattr__(self, "why", shorten_paths(self.why))
        if isinstance(self.where, str):
            object.__setattr__(self, "where", shorten_paths(self.where))

    def __str__(self) -> str:
        from anyshape.findings.render import render

        return render(self)
