"""Tables of plain text that fit a terminal of 80 columns, with no character that a Windows console lacks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 80
_NARROWEST = 8
_GAP = "  "


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """The lines of a table. Columns whose number is in `right` are aligned there; cells that are too long are wrapped.

    A column without any text is left out.
    """
    lines = [list(head), *(list(row) for row in rows)]
    shown = [place for place in range(len(head)) if any(line[place] for line in lines)]
    lines = [[line[place] for place in shown] for line in lines]
    widths = _widths(lines)
    numbers = {shown.index(place) for place in right if place in shown}
    return [text for line in lines for text in _wrapped(line, widths, numbers)]


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    while sum(widths) + len(_GAP) * len(widths) > WIDTH and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrapped(line: Sequence[str], widths: Sequence[int], right: set[int]) -> Iterator[str]:
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        aligned = [
            part.rjust(width) if place in right else part.ljust(width)
            for place, (part, width) in enumerate(zip(parts, widths, strict=True))
        ]
        yield (_GAP + _GAP.join(aligned)).rstrip()


def wrap_line(label: str, text: str) -> list[str]:
    """`  rule    text`, continued under the text where it is too long."""
    head = f"  {label:<8}"
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]
