"""A finding: one thing that stands between a model and its promise, as facts.

A finding holds facts, `render` alone turns them into text; nobody parses our text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from anyshape.findings.paths import shorten_paths
from anyshape.findings.reasons import Reason


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
class Remedy:
    """What a fix changes, as facts: rules and options of the call, sizes of axes, lines of the user's code.

    An option is a name and a value. An axis is the path of an input or the name of an output, the number of the axis and the
    expression that its size follows. An edit is a line and its new text. `values` has the bounds of inputs by name.
    `otherwise` is what is shown in the place of a fix that does not help.
    """

    where: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    input_axes: tuple[tuple[str, int, str], ...] = ()
    output_axes: tuple[tuple[str, int, str], ...] = ()
    edits: tuple[tuple[Source, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    otherwise: str = ""

    def joined(self, other: Remedy) -> Remedy:
        """Both changes together, each part once."""
        return Remedy(
            where=tuple(dict.fromkeys((*self.where, *other.where))),
            options=tuple(dict.fromkeys((*self.options, *other.options))),
            input_axes=tuple(dict.fromkeys((*self.input_axes, *other.input_axes))),
            output_axes=tuple(dict.fromkeys((*self.output_axes, *other.output_axes))),
            edits=tuple(dict.fromkeys((*self.edits, *other.edits))),
            values=tuple(dict.fromkeys((*self.values, *other.values))),
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong with what, where, why, and what to do about it.

    `code` and `name` come from the catalogue and never change meaning. `what` is one sentence in the user's own words,
    and stands alone; the others are the labelled lines under it, each left out when empty. `source` is the user's line
    where `where` speaks of something else, such as a node of the file. `narrows`: the contract is smaller than the declared
    domain for this reason, and `anyshape.export` issues a warning. `remedy` is what `fix` changes, where an export can try
    it; `is_fix_untried` is True for a fix that is code, and that nothing has tried. `reason` is what a decision may compare,
    `about` the dims, rules or axes that distinguish it from other findings of the same reason.
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
    remedy: Remedy | None = field(default=None, compare=False)
    is_fix_untried: bool = False
    reason: Reason | None = field(default=None, compare=False)
    about: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        # Messages of torch and Python quote absolute paths.
        object.__setattr__(self, "why", shorten_paths(self.why))
        if isinstance(self.where, str):
            object.__setattr__(self, "where", shorten_paths(self.where))

    def repeats(self, other: Finding) -> bool:
        """Whether this is the other finding once more: for the same reason, about the same things."""
        is_same_reason = self.reason is not None and self.reason is other.reason
        return self == other or (is_same_reason and self.about == other.about)

    def __str__(self) -> str:
        from anyshape.findings.render import render

        return render(self)
