"""Lines of the user's code with those around them, and fixes as diffs."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from anyshape.findings import Finding, Source

_AROUND = 3


@dataclass(frozen=True)
class Excerpt:
    """Numbered lines of a file; `line` is the one that is meant."""

    file: str
    line: int
    function: str
    lines: tuple[tuple[int, str], ...]


def excerpt_of(source: Source) -> Excerpt:
    """The line with three before and after it; the line alone where its file is not found, or has changed."""
    for path in _candidates(source.file):
        lines = linecache.getlines(path)
        if not 0 < source.line <= len(lines):
            continue
        is_same = not source.text or lines[source.line - 1].strip() == source.text.strip()
        if is_same:
            first, last = max(1, source.line - _AROUND), min(len(lines), source.line + _AROUND)
            around = tuple((number, lines[number - 1].rstrip("\n")) for number in range(first, last + 1))
            return Excerpt(source.file, source.line, source.function, around)
    alone = ((source.line, source.text),) if source.text else ()
    return Excerpt(source.file, source.line, source.function, alone)


def source_called(place: str) -> Source | None:
    """The line of a text such as `model.py:7`."""
    file, _, line = place.rpartition(":")
    return Source(file, int(line)) if file and line.isdigit() else None


def _candidates(file: str) -> Iterator[str]:
    """Where a file may lie whose path is relative to the current folder, or is its name alone."""
    linecache.checkcache(file)
    yield file
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and Path(path).name == Path(file).name:
            yield path


def fix_as_diff(finding: Finding) -> str:
    """The fix as a unified diff, where it edits lines of the user's code; else ""."""
    edits = () if finding.remedy is None else finding.remedy.edits
    diffs = [_diff(source, text) for source, text in edits if source.text]
    return "".join(diffs)


def _diff(source: Source, text: str) -> str:
    """One line and its new text, with the lines around it where the file is found."""
    excerpt = excerpt_of(source)
    before = [line + "\n" for _, line in excerpt.lines]
    place = next(index for index, (number, _) in enumerate(excerpt.lines) if number == source.line)
    old = before[place]
    indent = old[: len(old) - len(old.lstrip())]
    after = [*before[:place], indent + text.strip() + "\n", *before[place + 1 :]]
    first = excerpt.lines[0][0]
    lines = list(unified_diff(before, after, f"a/{source.file}", f"b/{source.file}", n=_AROUND))
    if not lines:
        return ""
    moved = f"@@ -{first},{len(before)} +{first},{len(after)} @@\n"
    return "".join([*lines[:2], moved, *lines[3:]])
