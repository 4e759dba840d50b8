"""The page of many models: a row for each, with the whole text of what stands against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.report.amounts import format_bytes
from anyshape.report.page.render_page import COLOURS, check_report_packages, render_template

_GOOD = ("kept", "narrowed")


def render_many(title: str, rows: Sequence[Mapping[str, Any]], *, total: int | None = None, command: str = "") -> str:
    """A page of many results: `name`, `status` (kept, narrowed, unverified, broken or refused), `said`, `seconds`.

    What else a row may have: `outcome` is the word that is shown in place of the status, `sizes` the number of compared sizes,
    `dims` what is promised, `memory` in bytes, `text` the whole text behind `said`, and `link` the relative path of a page of
    its own (other links are left out). `total` is more than the rows are where some are not done.
    """
    check_report_packages()
    plain = [_row(row) for row in rows]
    kept = sum(row["status"] in _GOOD for row in plain)
    count = len(rows) if total is None else total
    others = Counter(row["outcome"] for row in plain if row["status"] not in _GOOD)
    counts = [("kept", kept), *others.items(), *([("not done", count - len(rows))] if count > len(rows) else [])]
    status = "kept" if kept == count else "refused"
    context = {"rows": plain, "counts": counts, "total": count, "status": status, "command": command}
    return render_template("many.html", title, context)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    status = row["status"] if row["status"] in COLOURS else "refused"
    return {
        "name": str(row["name"]),
        "status": status,
        "outcome": str(row.get("outcome") or status),
        "said": str(row.get("said", "")),
        "text": str(row.get("text") or ""),
        "sizes": str(row.get("sizes") or ""),
        "dims": str(row.get("dims") or ""),
        "seconds": "" if row.get("seconds") is None else f"{row['seconds']:.1f}",
        "memory": "" if not row.get("memory") else format_bytes(row["memory"]),
        "link": _relative(str(row.get("link") or "")),
    }


def _relative(link: str) -> str:
    """The link, unless it leads out of the folder of the page or has a scheme such as javascript."""
    is_inside = bool(link) and ":" not in link and not link.startswith(("/", "\\")) and ".." not in link
    return link if is_inside else ""
