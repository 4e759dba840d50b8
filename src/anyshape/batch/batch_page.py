"""The page of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anyshape.batch.rows import BROKEN, KEPT, UNVERIFIED, Row
from anyshape.batch.summary import rows_as_records
from anyshape.report.page.many_page import render_many
from anyshape.saving import write_atomically


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
    write_atomically(path, lambda stream: stream.write(page.encode()))
