"""The charts of a page, each with a title and the words that a screen reader has in its place."""

from __future__ import annotations

from typing import Any

from anyshape.domain import format_sizes
from anyshape.records.runs import Run
from anyshape.records.verdict import Verdict
from anyshape.report.page.charts import number_map, stage_bars, word_map
from anyshape.report.page.page_facts import PageFacts
from anyshape.report.page.shown_text import shown
from anyshape.report.page.size_cells import (
    MOST_PAIRS,
    CellMap,
    Pair,
    map_errors,
    map_figures,
    map_regions,
    pairs_of,
)

Json = dict[str, Any]
_LEAST_S = 0.005
_FEW_COLUMNS = 8


def maps_view(facts: PageFacts) -> Json:
    """The maps over each pair of dims, and every compared size as a table."""
    pairs = pairs_of(facts.domain.names) if facts.domain is not None else []
    maps = [each for pair in pairs[:MOST_PAIRS] for each in _maps_of(facts, pair)]
    left_out = len(pairs) - MOST_PAIRS
    more = f"{left_out} further pairs of dims are in the table alone." if left_out > 0 else ""
    compared = () if facts.verdict is None else facts.verdict.compared
    names = list(compared[0].errors) if compared else []
    rows = [
        {"sizes": format_sizes(each.sizes), "errors": [f"{each.errors.get(name, 0.0):.2g}" for name in names]}
        for each in compared
    ]
    return {
        "maps": maps,
        "maps_note": more,
        "compared_rows": rows,
        "outputs_compared": names,
        "allowed": _allowed(facts),
        "unit": _unit(facts),
    }


def _maps_of(facts: PageFacts, pair: Pair) -> list[Json]:
    """Errors, regions and, where they were measured, latency and memory."""
    over = f"{pair.x} and {pair.y}" if pair.y else pair.x
    found = []
    if (cells := map_errors(facts, pair)) is not None:
        allowed = _allowed(facts)
        unit = _unit(facts)
        caption = f"The worst error among the compared sizes of each cell, in {unit}s of its output{allowed}."
        found.append(describe_map(f"Error over {over}", caption, cells, number_map(cells, f"error, in {unit}s")))
    if (cells := map_regions(facts, pair)) is not None:
        caption = (
            "Which sizes are in the contract, and which program of the file answers; other dims as in the example."
        )
        found.append(describe_map(f"Regions over {over}", caption, cells, word_map(cells)))
    for memory, title, unit in ((False, "Latency", "ms"), (True, "Memory", "MB")):
        if (cells := map_figures(facts, pair, memory=memory)) is not None:
            caption = "Measured, each size in a process of its own."
            found.append(describe_map(f"{title} over {over}", caption, cells, number_map(cells, unit, measured=True)))
    return found


def describe_map(title: str, caption: str, found: CellMap, svg: str) -> Json:
    """A map for a template: its picture, and words in its place."""
    from markupsafe import Markup

    numbers = [cell.value for cell in found.cells if cell.value is not None]
    said = [cell.word for cell in found.cells if cell.value is None]
    spread = [f"{len(numbers)} cells from {min(numbers):.2g} to {max(numbers):.2g}"] if numbers else []
    counted = [f"{said.count(word)} {word}" for word in sorted(set(said))]
    label = shown(f"{title}: {', '.join([*spread, *counted])}")
    is_wide = len(found.x) > _FEW_COLUMNS
    return {"title": shown(title), "caption": caption, "label": label, "svg": Markup(svg), "is_wide": is_wide}


def _unit(facts: PageFacts) -> str:
    return Verdict().unit if facts.verdict is None else facts.verdict.unit


def _allowed(facts: PageFacts) -> str:
    allowed = sorted({each.allowed for each in facts.verdict.outputs}) if facts.verdict is not None else []
    if not allowed:
        return ""
    ends = f"{allowed[0]:.2g}" if len(allowed) == 1 else f"{allowed[0]:.2g} to {allowed[-1]:.2g}"
    return f": up to {ends} counts as equal"


def stages_view(run: Run | None) -> Json:
    """The times of the stages, as bars and as words."""
    from markupsafe import Markup

    stages = [each for each in (() if run is None else run.stages) if each.seconds >= _LEAST_S]
    label = ", ".join(f"{each.stage} {each.seconds:.2f} s" for each in stages)
    return {"stages_label": label, "stages_svg": Markup(stage_bars(stages)) if stages else ""}
