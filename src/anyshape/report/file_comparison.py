"""Two files of one model, compared: as records, as a table of 80 columns, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyshape.domain import format_sizes
from anyshape.findings import Finding, Severity, render_all
from anyshape.records.runs import Benched, Reportable, Run
from anyshape.records.verdict import Verdict
from anyshape.records.verdict import as_plain as verdict_as_plain
from anyshape.report import findings_as_plain, format_bytes, format_table, wrap_line
from anyshape.report.benches import bench_as_plain

LETTERS = ("A", "B")
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class FileSide:
    """One of the two files: how it compares with the model, and what it costs.

    `bytes` is the size of the file with its second file of weights. `contract` is the status in its contract, "none" for a file
    of another exporter. `benched` is None where nothing was measured.
    """

    path: str
    bytes: int
    nodes: int
    opset: int
    contract: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    benched: Benched | None = None

    @property
    def is_right(self) -> bool:
        """Whether the file agrees with the model at every size that was compared."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def worst(self) -> float | None:
        """The worst error over all outputs and sizes in units of the noise floor; None where nothing compared equal."""
        return max((output.worst for output in self.verdict.outputs), default=None)


@dataclass(frozen=True, kw_only=True)
class ErrorsAt:
    """Errors at some sizes, in units of the noise floor: of each file against the model, and of B against A.

    An error is infinite where shapes, dtypes or NaN differ, and NaN where there is no answer. `beyond` says of each file
    whether its error is beyond the tolerance, `unanswered` has the message of each file that gave no answer, by its letter.
    `differs` says how the two files differ; "" where they agree.
    """

    sizes: Mapping[str, int] = field(hash=False)
    errors: tuple[float, float]
    between: float
    beyond: tuple[bool, bool] = (False, False)
    differs: str = ""
    unanswered: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def agrees(self) -> bool:
        """Whether both files answer alike; that neither answers is alike, too."""
        return not self.differs and len(self.unanswered) != 1


@dataclass(frozen=True, kw_only=True)
class FilesCompared(Reportable):
    """What `anyshape compare` found. `rows` has one entry for each size; it is empty for models that draw random numbers or
    carry state, whose files are compared with the model alone (`not_paired` says so). `run` is what was declared, with the
    seed and the versions."""

    sides: tuple[FileSide, FileSide]
    rows: tuple[ErrorsAt, ...]
    unit: str = "noise floors"
    not_paired: str = ""
    seconds: float = 0.0
    run: Run | None = field(default=None, repr=False)

    @property
    def agree(self) -> bool:
        """Whether the two files give the same answers at every size."""
        return all(row.agrees for row in self.rows)

    @property
    def is_kept(self) -> bool:
        """Whether both files are right, and agree."""
        return all(side.is_right for side in self.sides) and self.agree

    def as_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kept": self.is_kept,
            "agree": self.agree,
            "files": [_side_as_plain(side) for side in self.sides],
            "unit": self.unit,
            "sizes": [_row_as_plain(row) for row in self.rows],
            "not_paired": self.not_paired,
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        return describe_comparison(self)


def _side_as_plain(side: FileSide) -> dict[str, Any]:
    return {
        "path": side.path,
        "right": side.is_right,
        "worst_error": _finite(side.worst),
        "bytes": side.bytes,
        "nodes": side.nodes,
        "opset": side.opset,
        "contract": side.contract,
        "verdict": verdict_as_plain(side.verdict),
        "findings": findings_as_plain(side.findings),
        "bench": None if side.benched is None else bench_as_plain(side.benched),
    }


def _row_as_plain(row: ErrorsAt) -> dict[str, Any]:
    return {
        "sizes": dict(row.sizes),
        "errors": [_finite(error) for error in row.errors],
        "between": _finite(row.between),
        "differs": row.differs,
        "unanswered": dict(row.unanswered),
    }


def _finite(number: float | None) -> float | None:
    """A number that JSON has; None for one that is infinite."""
    return None if number is None or not math.isfinite(number) else number


def describe_comparison(compared: FilesCompared) -> str:
    """The verdict in one line, the two files beside each other, then errors and costs at a few sizes; findings last."""
    status = "kept" if compared.is_kept else "BROKEN"
    lines = [f"{status}: {say_outcome(compared)}: {len(compared.rows)} sizes in {compared.seconds:.1f} s", ""]
    lines += format_table(
        ("", *(f"{letter} {Path(side.path).name}" for letter, side in lettered(compared))), side_facts(compared)
    )
    if compared.rows:
        lines += ["", f"Errors in {compared.unit}: of A and B against the model, and of B against A.", ""]
        lines += format_table(
            ("sizes", "A", "B", "A to B", ""), map(error_cells, worst_first(compared)[:_SHOWN]), right=(1, 2, 3)
        )
        left = len(compared.rows) - _SHOWN
        lines += [f"  and {left} more sizes"] if left > 0 else []
    lines += wrap_line("note", compared.not_paired) if compared.not_paired else []
    if any(side.benched for side in compared.sides):
        head = ("sizes", "A ms", "B ms", "eager ms", "A MB", "B MB")
        lines += ["", "Time of a call, and memory of its process:", ""]
        lines += format_table(head, cost_cells(compared), right=(1, 2, 3, 4, 5))
    for letter, side in lettered(compared):
        lines += ["", f"{letter} {side.path}", render_all(side.findings)] if side.findings else []
    return "\n".join(lines)


def lettered(compared: FilesCompared) -> list[tuple[str, FileSide]]:
    """The two files with their letters."""
    return list(zip(LETTERS, compared.sides, strict=True))


def say_outcome(compared: FilesCompared) -> str:
    """`both are right, they agree`."""
    wrong = [letter for letter, side in lettered(compared) if not side.is_right]
    right = "both are right" if not wrong else f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong"
    agree = "not compared with each other" if compared.not_paired else "they agree" if compared.agree else "they differ"
    return f"{right}, {agree}"


def side_facts(compared: FilesCompared) -> list[tuple[str, ...]]:
    """What is known of the two files, side by side: a label, A and B."""
    one, other = compared.sides
    ratio = f" ({other.bytes / one.bytes:.2f} x A)" if one.bytes else ""
    return [
        ("agrees with the model", *map(_said, compared.sides)),
        ("worst error", *(worst_error(compared, place) for place in range(len(compared.sides)))),
        ("file size", format_bytes(one.bytes), format_bytes(other.bytes) + ratio),
        ("nodes", str(one.nodes), str(other.nodes)),
        ("opset", str(one.opset), str(other.opset)),
        ("contract", one.contract, other.contract),
    ]


def worst_error(compared: FilesCompared, place: int) -> str:
    """Over the comparisons with the model, which have edge values, too, and the sizes below."""
    errors = [row.errors[place] for row in compared.rows if not math.isnan(row.errors[place])]
    known = compared.sides[place].worst
    worst = max([*errors, *([] if known is None else [known])], default=None)
    return "-" if worst is None else f"{_figure(worst)} {compared.unit}"


def _said(side: FileSide) -> str:
    if side.is_right:
        return f"at {len(side.verdict.tried)} sizes"
    failed = side.verdict.smallest_failure
    return "no" if failed is None else f"not at {format_sizes(failed.sizes) or 'any size'}"


def worst_first(compared: FilesCompared) -> list[ErrorsAt]:
    """The sizes at which the files differ, then those with the largest errors."""
    return sorted(compared.rows, key=lambda row: (row.agrees and not row.unanswered, -_largest(row)))


def _largest(row: ErrorsAt) -> float:
    return max((error for error in (*row.errors, row.between) if not math.isnan(error)), default=0.0)


def error_cells(row: ErrorsAt) -> tuple[str, ...]:
    """The sizes, the errors of A and B, that of B against A, and what is to be said of them."""
    figures = (_figure(error) for error in (*row.errors, row.between))
    raises = f"{' and '.join(row.unanswered)} {'raises' if len(row.unanswered) == 1 else 'raise'}"
    return (format_sizes(row.sizes) or "no dims", *figures, raises if row.unanswered else row.differs)


def _figure(error: float) -> str:
    return "-" if math.isnan(error) else "inf" if math.isinf(error) else f"{error:.2g}"


def cost_cells(compared: FilesCompared) -> list[tuple[str, ...]]:
    """The sizes, the ms of A, B and eager, and the MB of A and B, for each measured size."""
    benched = [side.benched.rows if side.benched else () for side in compared.sides]
    rows = []
    for one, other in zip(*benched, strict=False):
        timings = (one.timing, other.timing)
        ms = ["failed" if timing is None else _cost(timing.ms) for timing in timings]
        mb = ["" if timing is None else _cost(timing.peak_mb) for timing in timings]
        rows.append((format_sizes(one.sizes) or "no dims", *ms, _cost(one.eager_ms), *mb))
    return rows


def _cost(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
