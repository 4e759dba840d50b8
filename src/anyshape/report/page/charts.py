"""The charts of a page, drawn by Vega-Lite as SVG: maps over sizes, bars of times, each with its title and spoken words.

Names of the user are titles and never field names: a field name with a dot or a bracket would be read as a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyshape.domain import format_sizes
from anyshape.findings.finding import shown
from anyshape.processes import is_own_process
from anyshape.records.runs import Run, StageTime
from anyshape.records.verdict import Verdict
from anyshape.report.page.page_facts import PageFacts
from anyshape.report.page.size_cells import (
    INSIDE,
    MOST_PAIRS,
    NOT_COMPARED,
    OUTSIDE,
    Cell,
    CellMap,
    Pair,
    map_errors,
    map_figures,
    map_regions,
    pairs_of,
)

_CELL, _ROW, _THIN, _CHARACTER = 42, 28, 64, 8
_INK = "#18181b"
_ERRORS = ("#dbeafe", "#60a5fa")
_FIGURES = ("#fef9c3", "#fb923c")
_GREY, _RED, _GREEN = "#cbd5e1", "#f87171", "#86efac"
_WORDS = {"wrong": _RED, "failed": _RED, "differs": _RED, "refused": _GREY, OUTSIDE: _GREY, INSIDE: _GREEN}
_REGIONS = (_GREEN, "#93c5fd", "#fcd34d", "#f9a8d4", "#c4b5fd", "#5eead4", "#fdba74", "#a3e635")
_BAR = "#3b82f6"
_SERIES = {"A": _BAR, "B": "#f59e0b", "eager": "#94a3b8"}
_ID = re.compile(r'((?<= id=")|(?<=url\(#))')
_SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
_CONFIG = {
    "aria": False,  # the words for a screen reader are in the page, one sentence for a chart
    "background": None,
    "font": "sans-serif",
    "padding": {"left": 32, "right": 24, "top": 4, "bottom": 4},
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridOpacity": 0.25},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 400,
        "columnPadding": 28,
    },
}
_DRAW = (
    "import json, sys; sys.path[:] = sys.argv[1:]; import vl_convert; "
    "sys.stdout.write(vl_convert.vegalite_to_svg(json.load(sys.stdin)))"
)
_DRAWN_IN: dict[str, int] = {}  # the process that has started the threads of vl_convert for us
_LEAST_S = 0.005
_FEW_COLUMNS = 8


@dataclass(frozen=True)
class CostRow:
    """One bar: the sizes, the letter of a file or `eager`, and the milliseconds of a call."""

    group: str
    name: str
    ms: float


def number_map(found: CellMap, legend: str, *, measured: bool = False) -> str:
    """A heat map of numbers, as SVG; a cell with a word in place of a number has the colour of the word."""
    import altair as alt

    numbers = [cell for cell in found.cells if cell.value is not None]
    words = [cell for cell in found.cells if cell.value is None and cell.word != NOT_COMPARED]
    empty = [cell for cell in found.cells if cell.word == NOT_COMPARED]
    layers = [_rects(found, empty, filled=False)] if empty else []
    if numbers:
        low, high = _FIGURES if measured else _ERRORS
        most = max(cell.value for cell in numbers if cell.value is not None) or 1.0
        scale = alt.Scale(domain=[0, most], range=[low, high])
        bar = alt.Legend(orient="top", gradientLength=160, tickCount=3)
        layers.append(_rects(found, numbers).encode(alt.Color("value:Q", title=legend, scale=scale, legend=bar)))
    if words:
        layers.append(_rects(found, words).encode(_fill(sorted({cell.word for cell in words}), _WORDS)))
    texts = _chart(found, [*numbers, *words]).mark_text(color=_INK, fontSize=12).encode(alt.Text("text:N"))
    return _map_svg(alt.layer(*layers, texts).resolve_scale(fill="independent"), found)


def word_map(found: CellMap) -> str:
    """A map of the programs of the file, as SVG."""
    words = sorted({cell.word for cell in found.cells}, key=lambda word: (word == OUTSIDE, len(word), word))
    regions = [word for word in words if word not in _WORDS]
    colours = {word: _REGIONS[index % len(_REGIONS)] for index, word in enumerate(regions)} | _WORDS
    return _map_svg(_rects(found, found.cells).encode(_fill(words, colours)), found)


def stage_bars(stages: Sequence[StageTime]) -> str:
    """One bar for each stage with its seconds, as SVG."""
    import altair as alt

    rows = [{"stage": shown(each.stage), "seconds": each.seconds, "text": f"{each.seconds:.2f} s"} for each in stages]
    y = alt.Y("stage:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=300))
    x = alt.X("seconds:Q", title="seconds", axis=alt.Axis(grid=True, tickCount=6))
    chart = alt.Chart(alt.InlineData(values=rows))
    bars = chart.mark_bar(color=_BAR, cornerRadiusEnd=3, height=16).encode(y, x)
    texts = chart.mark_text(align="left", dx=5).encode(y, x, alt.Text("text:N"))
    return _as_svg(alt.layer(bars, texts).properties(width=460, height=alt.Step(_ROW)))


def cost_bars(rows: Sequence[CostRow]) -> str:
    """Bars side by side for each group, one for each name, with their milliseconds, as SVG."""
    import altair as alt

    names = list(dict.fromkeys(row.name for row in rows))
    values = [{"group": shown(row.group), "name": row.name, "ms": row.ms, "text": f"{row.ms:.3g} ms"} for row in rows]
    plain: dict[str, Any] = {"ticks": False, "domain": False, "labelLimit": 300}
    y = alt.Y("group:N", sort=None, title=None, axis=alt.Axis(**plain))
    offset = alt.YOffset("name:N", sort=names)
    x = alt.X("ms:Q", title="ms", axis=alt.Axis(grid=True, tickCount=6))
    scale = alt.Scale(domain=names, range=[_SERIES[name] for name in names])
    colour = alt.Color("name:N", title=None, scale=scale, legend=alt.Legend(orient="top", symbolType="square"))
    chart = alt.Chart(alt.InlineData(values=values))
    bars = chart.mark_bar(cornerRadiusEnd=3).encode(y, x, offset, colour)
    texts = chart.mark_text(align="left", dx=5).encode(y, x, offset, alt.Text("text:N"))
    return _as_svg(alt.layer(bars, texts).properties(width=460, height=alt.Step(_THIN, **{"for": "position"})))


def _fill(words: Sequence[str], colours: dict[str, str]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(words), range=[colours[word] for word in words])
    return alt.Fill("word:N", title=None, scale=scale, legend=alt.Legend(orient="top", symbolType="square"))


def _rects(found: CellMap, cells: Sequence[Cell], *, filled: bool = True) -> Any:
    """Rounded cells with a gap between them; those that are not filled have an outline alone."""
    look: dict[str, Any] = {} if filled else {"fill": None, "stroke": _GREY, "strokeOpacity": 0.45}
    return _chart(found, cells).mark_rect(cornerRadius=4, width=_band(), height=_band(), **look)


def _band() -> Any:
    """A cell takes nine tenths of its step."""
    import altair as alt

    return alt.RelativeBandSize(0.9)


def _chart(found: CellMap, cells: Sequence[Cell]) -> Any:
    """Cells on two axes whose labels are the sizes."""
    import altair as alt

    rows = [
        {"x": found.x[cell.x], "y": found.y[cell.y], "value": cell.value, "word": cell.word, "text": cell.text}
        for cell in cells
    ]
    plain: dict[str, Any] = {"ticks": False, "domain": False, "labelAngle": 0, "labelLimit": 200}
    x, y = list(found.x), list(reversed(found.y))
    across = alt.X("x:N", title=shown(found.pair.x), sort=x, scale=alt.Scale(domain=x), axis=alt.Axis(**plain))
    if not found.pair.y:
        return alt.Chart(alt.InlineData(values=rows)).encode(across)
    flat = alt.Axis(**plain, titleAngle=0, titleAlign="right")
    up = alt.Y("y:N", title=shown(found.pair.y), sort=y, scale=alt.Scale(domain=y), axis=flat)
    return alt.Chart(alt.InlineData(values=rows)).encode(across, up)


def _map_svg(chart: Any, found: CellMap) -> str:
    import altair as alt

    step = max(_CELL, _CHARACTER * max(map(len, found.x)))
    return _as_svg(chart.properties(width=alt.Step(step), height=alt.Step(_ROW) if found.pair.y else _ROW))


def _as_svg(chart: Any) -> str:
    """The chart as SVG without a background, as wide as the page allows and no wider than it was drawn."""
    drawn = _drawn({**chart.to_dict(validate=False), "config": _CONFIG})
    mark = hashlib.sha256(drawn.encode()).hexdigest()[:8]  # ids of two charts on one page differ
    drawn = _ID.sub(rf"\g<1>{mark}-", drawn)
    style = r"width:100%;max-width:\2px;min-width:min(\2px,24rem);height:auto"
    return _SIZE.sub(rf'<svg \1style="{style}" aria-hidden="true" focusable="false"', drawn, count=1)


def _drawn(chart: dict[str, Any]) -> str:
    """The SVG of a chart of Vega-Lite.

    vl_convert draws in threads that it starts at its first call. They do not survive a fork, and a call that waits for them
    never returns: where another process may have started them, the chart is drawn in a fresh interpreter.
    """
    if "vl_convert" in sys.modules and _DRAWN_IN.get("pid") != os.getpid() and is_own_process():
        command = [sys.executable, "-c", _DRAW, *sys.path]
        return subprocess.run(command, input=json.dumps(chart), stdout=subprocess.PIPE, text=True, check=True).stdout
    import vl_convert

    _DRAWN_IN["pid"] = os.getpid()
    return str(vl_convert.vegalite_to_svg(chart))


Json = dict[str, Any]


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
