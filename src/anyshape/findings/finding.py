"""A finding: one thing that stands between a model and its promise.

A finding holds facts, and a reason as a type for whatever acts on it; `render` alone makes text of it, and no code parses that
text. (`anyshape.load` reads the name of a failed node in onnxruntime's message: a node of ours that refuses values.) Paths of
source files are relative to the current folder: an absolute path names the user's home folder, and makes another file on
another machine.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from textwrap import indent
from typing import Any

PACKAGE_FOLDER = Path(sys.modules[__name__.partition(".")[0]].__path__[0])

# An absolute path that ends in .py: /home/me/model.py, C:\me\model.py; not the path of a URL.
_ABSOLUTE = re.compile(r"""(?<![\w/:.\\])(?:[A-Za-z]:[\\/]|/)[^\s"'<>|:]*\.py\b""")

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_LABELS = (("Where", "where"), ("Why", "why"), ("Fix", "fix"), ("Or", "alternative"), ("Replay", "replay"))
_MARGIN = " " * 10
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format (marks of direction), surrogate, private, separators


def shorten(file: str) -> str:
    """The path relative to the current folder where it lies inside, else the file's own name."""
    path = Path(file)
    if _DRIVE.match(file) and not path.is_absolute():  # a path of Windows, read elsewhere
        return re.split(r"[\\/]", file)[-1]
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.name


def quoted(path: str) -> str:
    """The path as it is typed in a command: in quotes, of bash and of Windows alike, where it has a blank."""
    return f'"{path}"' if re.search(r"\s", path) else path


def text_of_error(error: BaseException) -> str:
    """What an error says; nothing where its own code fails to say it."""
    try:
        return str(error)
    except Exception:
        return ""


def shorten_paths(text: str) -> str:
    """The text with every absolute path of a Python file shortened."""
    return _ABSOLUTE.sub(lambda match: shorten(match[0]), text)


class Reason(Enum):
    """The reasons that some code acts on, or compares. A finding that is only shown has none."""

    ANSWERS_AT_ONE_SIZE = "the module answers at one size of a dim"
    ANSWERS_ON_LESS = "the module answers on less than was declared"
    AXIS_LEFT_OUT = "the declaration leaves an axis out that has to follow a dim"
    END_NOT_COMPARED = "the file was not compared up to a declared end"
    INTEGERS_END = "an open range ends where the integers of a file end"
    INTEGERS_TOO_LARGE = "a declared range goes beyond the integers of a file"
    NEEDS_COMPARING = "a capture without proof was to be exported without comparisons"
    NUMBER_WITHOUT_RULE = "a number of the traces follows no rule"
    OUTPUTS_VARY = "the module returns other outputs at sizes that were declared, by a known rule"
    OUTPUT_AXIS = "an axis of an output is not what its name says"
    OUT_OF_MEMORY = "a call needs more memory than there is"
    PATH_DEPENDS_ON_SIZES = "the traces run different operations at different sizes"
    RUNG_OUT_OF_TIME = "a rung has used its share of the time"
    SIZE_BRANCH = "the captured program holds on a part of the domain"
    STATE_KEPT = "the module keeps state from call to call"
    VALUES_DECIDE = "Python reads a value of a tensor"
    VALUES_DECIDE_ELSEWHERE = "Python reads a value of a tensor at sizes other than those of the first capture"


REFUSED_SIZES = frozenset(
    {Reason.ANSWERS_AT_ONE_SIZE, Reason.ANSWERS_ON_LESS, Reason.AXIS_LEFT_OUT, Reason.OUTPUTS_VARY}
)
"""The module raises at declared sizes, or returns other outputs there: `accept_narrower` leaves those sizes out."""


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
    where `where` names something else, such as a node of the file. `narrows`: the contract is smaller than the declared
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
        return render(self)


def shown(text: str) -> str:
    r"""The text on one line, with characters that are not seen as escapes: a newline is `\n`, a right-to-left mark `\u200f`."""
    return "".join(_shown(character, "") for character in text)


def shown_lines(value: Any) -> Any:
    """The same for a text of several lines, whose ends stay; anything but a plain text comes back as it is."""
    if type(value) is not str:
        return value
    return "".join(_shown(character, "\n\t") for character in value)


def _shown(character: str, kept: str) -> str:
    if character in kept or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def render(finding: Finding) -> str:
    """`CODE name: sentence`, then the labelled lines that are not empty; characters that are not seen are escapes."""
    lines = [f"{finding.code} {finding.name}: {shown(finding.what)}"]
    if finding.excerpt:
        lines.append(indent(finding.excerpt, "    "))
    for label, attribute in _LABELS:
        value = getattr(finding, attribute)
        if value:
            first, *rest = str(value).splitlines() or [""]
            untried = " (not tried)" if attribute == "fix" and finding.is_fix_untried else ""
            lines.append(f"  {label + untried + ':':7} {first}")
            lines.extend(_MARGIN + line for line in rest)
    return str(shown_lines("\n".join(lines)))


def render_all(findings: Iterable[Finding]) -> str:
    """Findings one under the other, the heaviest first, an empty line between."""
    weight = {"error": 0, "warning": 1, "note": 2}
    ordered = sorted(findings, key=lambda finding: weight[finding.severity.value])
    return "\n\n".join(render(finding) for finding in ordered)
