"""Rows as records for a report, as a table of plain text, and as the Markdown of summary.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from anyshape.batch.rows import Row
from anyshape.report.amounts import format_bytes

_COLUMNS = ("model", "outcome", "sizes", "dims", "seconds", "memory", "finding")
_WIDEST = 60


def rows_as_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One flat dict for each row, with the same keys in all: for a table of any kind."""
    return [
        {
            "model": row.name,
            "source": row.source,
            "outcome": row.outcome,
            "status": row.status,
            "sizes": row.compared,
            "dims": ", ".join(row.dims),
            "strategy": row.strategy or "",
            "seconds": round(row.seconds, 1),
            "memory": row.peak_memory,
            "bytes": row.bytes,
            "file": row.path or "",
            "code": (row.finding or {}).get("code", ""),
            "finding": _first_line(row),
            "text": (row.finding or {}).get("text", ""),
            "warnings": row.warnings,
            "machine": row.machine,
        }
        for row in rows
    ]


def count_outcomes(rows: Sequence[Row], total: int) -> str:
    """`38 of 40 models kept, 1 hung, 1 crashed`."""
    counts = Counter(row.outcome for row in rows)
    others = [f"{count} {outcome}" for outcome, count in sorted(counts.items()) if outcome != "kept"]
    if len(rows) < total:
        others.append(f"{total - len(rows)} not done")
    return ", ".join([f"{counts['kept']} of {total} {'model' if total == 1 else 'models'} kept", *others])


def as_text(rows: Sequence[Row]) -> str:
    """A table for a terminal, one line for each row."""
    lines = [_COLUMNS, *map(_cells, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def as_markdown(rows: Sequence[Row], total: int) -> str:
    """The page summary.md: the counts, a table, and the whole text of each failure."""
    table = [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    table += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in _cells(row))} |" for row in rows]
    texts = [(row.name, row.finding["text"]) for row in rows if row.finding is not None]
    failures = [part for name, text in texts for part in ("", f"## {name}", "", "```text", text, "```")]
    return "\n".join(["# Models", "", f"{count_outcomes(rows, total)}.", "", *table, *failures]) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.outcome,
        str(row.compared) if row.compared else "-",
        ", ".join(row.dims) or "-",
        f"{row.seconds:.1f}",
        format_bytes(row.peak_memory) if row.peak_memory else "-",
        _shortened(_first_line(row)) or "-",
    )


def _first_line(row: Row) -> str:
    return str((row.finding or {}).get("text", "")).partition("\n")[0]


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
