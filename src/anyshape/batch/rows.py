"""A row is the result of one model: the record, tables of rows as text and Markdown, and the page of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from anyshape.report import format_bytes
from anyshape.report.page import render_many
from anyshape.saving import write_atomically
from anyshape.saving.outputs import PAGE

KEPT, BROKEN, UNVERIFIED, REFUSED, FAULT = "kept", "broken", "unverified", "refused", "fault"
CRASHED, HUNG, OUT_OF_MEMORY, LOST = "crashed", "hung", "out of memory", "lost"
_COLUMNS = ("model", "outcome", "sizes", "dims", "seconds", "memory", "finding")
_WIDEST = 60


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one model.

    `outcome` is kept, broken, unverified, refused, fault, crashed, hung, out of memory or lost; `status` is the exit
    status that belongs to it. `path` is the ONNX file, the first one of several `files`, and `folder` the model's folder, all
    seen from the output folder.
    `dims` has the range of each dim, and the rules between dims. `finding` is the first error: its code, name and text, and
    what else it has. `machine` is empty for this one.
    """

    name: str
    source: str
    outcome: str
    status: int
    seconds: float
    folder: str = ""
    path: str | None = None
    files: tuple[str, ...] = ()
    bytes: int | None = None
    dims: tuple[str, ...] = ()
    compared: int = 0
    strategy: str | None = None
    peak_memory: int | None = None
    finding: Mapping[str, Any] | None = None
    warnings: int = 0
    machine: str = ""
    time_limit: float = 0.0
    memory_limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_kept(self) -> bool:
        return self.outcome == KEPT

    def as_plain(self) -> dict[str, Any]:
        """As dicts, lists, texts and numbers, for JSON."""
        return asdict(self) | {"dims": list(self.dims), "files": list(self.files)}


def row_from_plain(plain: Mapping[str, Any]) -> Row:
    """The inverse of `Row.as_plain`; TypeError if a field is missing."""
    known = {each.name for each in fields(Row)}
    given = {name: value for name, value in plain.items() if name in known}
    return Row(**{**given, **{name: tuple(given.get(name, ())) for name in ("dims", "files")}})


def worst_status(rows: Iterable[Row]) -> int:
    """The exit status of a batch: that of its worst model, 0 if all are kept."""
    return max((row.status for row in rows), default=0)


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


def write_rows_page(path: Path, title: str, rows: Sequence[Row], total: int, *, command: str = "") -> None:
    """Write the rows as one HTML file. Raises UsageError where it cannot be written, or a package is missing."""
    shown = [
        {
            "name": record["model"],
            "status": record["outcome"] if record["outcome"] in (KEPT, UNVERIFIED, BROKEN) else "refused",
            "outcome": record["outcome"],
            "said": record["finding"],
            "text": record["text"],
            "sizes": record["sizes"],
            "dims": record["dims"],
            "seconds": record["seconds"],
            "memory": record["memory"],
        }
        for record in rows_as_records(rows)
    ]
    page = render_many(title, shown, total=total, command=command)
    write_atomically(path, lambda stream: stream.write(page.encode()), PAGE)
