"""The page of two files of one model: who is right, where they differ, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyshape.domain import format_sizes
from anyshape.findings.finding import shorten
from anyshape.records.runs import Run
from anyshape.report.file_comparison import (
    LETTERS,
    FilesCompared,
    FileSide,
    cost_cells,
    error_cells,
    lettered,
    say_outcome,
    side_facts,
    worst_error,
    worst_first,
)
from anyshape.report.page import COLOURS, check_report_packages, render_part, render_template
from anyshape.report.page.charts import CostRow, cost_bars, describe_map, number_map
from anyshape.report.page.page_facts import heaviest_first
from anyshape.report.page.page_view import capital, failure_view, findings_view, run_rows, say_range
from anyshape.report.page.size_cells import Pair, map_in_buckets, pairs_of

Json = dict[str, Any]
_MOST_PAIRS = 3  # each has three maps


def render_comparison(compared: FilesCompared, *, command: str = "") -> str:
    """The whole page as text. Raises UsageError where a package is missing."""
    check_report_packages()
    maps, left_out = _maps(compared)
    costs = [] if not any(side.benched for side in compared.sides) else cost_cells(compared)
    findings = [view for letter, side in lettered(compared) if (view := _findings(letter, side)) is not None]
    context = {
        **_summary(compared),
        "figures": list(_figures(compared)),
        "maps": maps,
        "maps_left_out": left_out,
        "rows": [error_cells(row) for row in worst_first(compared)],
        "costs": costs,
        **_cost_chart(compared),
        "findings": findings,
        "dims": [] if compared.run is None else [(dim.name, say_range(dim)) for dim in compared.run.domain.dims],
        "command": command,
        "repeat": _repeat(compared.run),
    }
    return render_template("comparison.html", _title(compared), context)


def render_comparison_summary(compared: FilesCompared) -> str | None:
    """The two files side by side as HTML for a notebook; None where jinja2 is missing."""
    return render_part("comparison_notebook.html", {**_summary(compared), "title": _title(compared)})


def _summary(compared: FilesCompared) -> Json:
    status = "kept" if compared.is_kept else "broken"
    unpaired = f" {capital(compared.not_paired)}" if compared.not_paired else ""
    return {
        "status": status,
        "colour": COLOURS[status],
        "word": "Both right" if compared.is_kept else "Broken",
        "sentence": f"{capital(say_outcome(compared))}.{unpaired}",
        "files": [{"letter": letter, "path": shorten(side.path)} for letter, side in lettered(compared)],
        "facts": side_facts(compared),
        "unit": compared.unit,
    }


def _title(compared: FilesCompared) -> str:
    names = [Path(side.path).name for side in compared.sides]
    return " and ".join(names if len(set(names)) > 1 else [shorten(side.path) for side in compared.sides])


def _figures(compared: FilesCompared) -> list[tuple[str, str]]:
    one, other = compared.sides
    found = [("sizes compared", str(len(compared.rows) or max(len(side.verdict.tried) for side in compared.sides)))]
    for place, (letter, side) in enumerate(lettered(compared)):
        worst = worst_error(compared, place).partition(" ")[0] if side.is_right else "wrong"
        found.append((f"worst error of {letter}, in {compared.unit}", worst))
    found += [("size of B, as a multiple of A", f"{other.bytes / one.bytes:.2f}")] if one.bytes else []
    ratios = _time_ratios(compared)
    if ratios:
        found.append(("time of B, as a multiple of A", f"{math.prod(ratios) ** (1 / len(ratios)):.2f}"))
    return [*found, ("seconds", f"{compared.seconds:.1f}")]


def _time_ratios(compared: FilesCompared) -> list[float]:
    one, other = ([] if side.benched is None else side.benched.rows for side in compared.sides)
    timed = [(a.timing.ms, b.timing.ms) for a, b in zip(one, other, strict=False) if a.timing and b.timing]
    return [b / a for a, b in timed if a > 0 and b > 0]


def _maps(compared: FilesCompared) -> tuple[list[Json], int]:
    """Over each pair of dims: the errors of both files, and of one against the other. And how many pairs are left out."""
    pairs = pairs_of(list(compared.rows[0].sizes)) if compared.rows else []
    found = [each for pair in pairs[:_MOST_PAIRS] for each in _maps_of(compared, pair)]
    return found, max(0, len(pairs) - _MOST_PAIRS)


def _maps_of(compared: FilesCompared, pair: Pair) -> list[Json]:
    over = f"{pair.x} and {pair.y}" if pair.y else pair.x
    wanted = [(f"Error of {letter}", place) for place, letter in enumerate(LETTERS)]
    found = []
    for title, place in [*wanted, ("B against A", None)]:
        numbers, words = [], []
        for row in compared.rows:
            error = row.between if place is None else row.errors[place]
            word = _word(compared, row, place)
            if word:
                words.append((row.sizes, word))
            elif math.isfinite(error):
                numbers.append((row.sizes, error))
        cells = map_in_buckets(pair, numbers, words)
        if cells is not None:
            svg = number_map(cells, f"error, in {compared.unit}")
            found.append(
                describe_map(f"{title} over {over}", f"The worst of each cell, in {compared.unit}.", cells, svg)
            )
    return found


def _word(compared: FilesCompared, row: Any, place: int | None) -> str:
    """What is wrong at some sizes with a file, or (None) with the agreement of both; "" where nothing is."""
    if place is None:
        return "failed" if row.unanswered else "differs" if not row.agrees else ""
    if LETTERS[place] in row.unanswered:
        return "failed"
    return "wrong" if row.beyond[place] and not compared.sides[place].is_right else ""


def _cost_chart(compared: FilesCompared) -> Json:
    """The times of a call as bars, and as words."""
    from markupsafe import Markup

    rows = _cost_rows([() if side.benched is None else side.benched.rows for side in compared.sides])
    label = ", ".join(f"{row.name} {row.ms:.3g} ms at {row.group}" for row in rows)
    return {"costs_label": label, "costs_svg": Markup(cost_bars(rows)) if rows else ""}


def _cost_rows(benched: Sequence[Sequence[Any]]) -> list[CostRow]:
    rows = []
    for pair in zip(*benched, strict=False):
        group = format_sizes(pair[0].sizes) or "no dims"
        rows += [
            CostRow(group, letter, each.timing.ms)
            for letter, each in zip(LETTERS, pair, strict=True)
            if each.timing is not None
        ]
        rows.append(CostRow(group, "eager", pair[0].eager_ms))
    return rows


def _findings(letter: str, side: FileSide) -> Json | None:
    """What is known against one of the files; None where nothing is."""
    if not side.findings:
        return None
    return {
        "id": letter.lower(),
        "title": f"Findings: {letter} {shorten(side.path)}",
        "failure": None if side.is_right else failure_view(side.verdict),
        "findings": findings_view(heaviest_first(side.findings)),
    }


def _repeat(run: Run | None) -> list[tuple[str, str]]:
    return [*run_rows(run), *(() if run is None else run.versions.items())]
