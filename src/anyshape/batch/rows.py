"""A row is the result of one model, as it is written to results.jsonl, and shown in tables and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

KEPT, BROKEN, UNVERIFIED, REFUSED, FAULT = "kept", "broken", "unverified", "refused", "fault"
CRASHED, HUNG, OUT_OF_MEMORY, LOST = "crashed", "hung", "out of memory", "lost"


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
