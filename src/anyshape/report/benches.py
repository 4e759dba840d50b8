"""What `anyshape bench` measured: as a table, as JSON, and as charts in SVG, which need no library to be made or seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from anyshape.domain import format_sizes
from anyshape.records.runs import Benched, BenchRow
from anyshape.report import format_table
from anyshape.runtime.child import as_plain_timing

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 36, 48
_COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#475569")
_TICKS = 5
_HEAD = ("sizes", "file ms", "median", "eager ms", "peak MB", "calls")


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The words of a chart."""

    title: str
    x: str = ""
    y: str = ""


def line_chart(labels: Labels, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """One line for each name, through its points (x, y). Both axes start at 0."""
    points = [point for line in series.values() for point in line]
    most_x, most_y = (_nice_end(max((point[axis] for point in points), default=1.0)) for axis in (0, 1))
    place = _Frame(most_x, most_y)
    parts = [*place.axes(labels)]
    for index, (name, line) in enumerate(series.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(f"{place.x(x):.1f},{place.y(y):.1f}" for x, y in sorted(line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{place.x(x):.1f}" cy="{place.y(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        parts.append(_text(_LEFT + 12, _TOP + 14 + 16 * index, name, colour=colour))
    return _document(parts, _HEIGHT)


def bar_chart(labels: Labels, groups: Mapping[str, Mapping[str, float]]) -> str:
    """One row for each group, with a bar for each of its names. Names have the same colour in every group."""
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    most = _nice_end(max((value for bars in groups.values() for value in bars.values()), default=1.0))
    row, left = 12 * len(names) + 8, 130
    height = _TOP + 20 + row * len(groups) + 12
    parts = [_text(_WIDTH / 2, 20, labels.title, anchor="middle", size=14)]
    for index, name in enumerate(names):
        parts.append(_text(left + 150 * index, _TOP + 6, name, colour=_COLOURS[index % len(_COLOURS)]))
    for line, (group, bars) in enumerate(groups.items()):
        top = _TOP + 20 + row * line
        parts.append(_text(left - 8, top + row / 2, group, anchor="end"))
        for name, value in bars.items():
            index = names.index(name)
            width = (_WIDTH - left - 60) * value / most
            colour, y = _COLOURS[index % len(_COLOURS)], top + 12 * index
            parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="10" fill="{colour}"/>')
            parts.append(_text(left + width + 4, y + 9, f"{value:.3g}", size=10))
    return _document(parts, height)


@dataclass(frozen=True)
class _Frame:
    """Where a point of the chart is on the page."""

    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.most_x

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.most_y

    def axes(self, labels: Labels) -> list[str]:
        parts = [_text(_WIDTH / 2, 20, labels.title, anchor="middle", size=14)]
        for step in range(_TICKS + 1):
            x, y = self.most_x * step / _TICKS, self.most_y * step / _TICKS
            grid = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{self.y(y):.1f}" y2="{self.y(y):.1f}"'
            parts.append(f'<line {grid} stroke="#e2e8f0"/>')
            parts.append(_text(_LEFT - 6, self.y(y) + 4, f"{y:.3g}", anchor="end"))
            parts.append(_text(self.x(x), _HEIGHT - _BOTTOM + 16, f"{x:.3g}", anchor="middle"))
        parts.append(_text(_WIDTH / 2, _HEIGHT - 10, labels.x, anchor="middle"))
        parts.append(_text(_LEFT, _TOP - 6, labels.y, anchor="middle"))
        return parts


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 11, colour: str = "#0f172a") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"


def _document(parts: Sequence[str], height: float) -> str:
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" data-generator="anyshape" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}" font-family="sans-serif">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def _nice_end(most: float) -> float:
    """The end of an axis: 1, 2, 2.5 or 5 times a power of ten, and not below the largest value."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if most <= step * power * (1 + 1e-9))


def describe_bench(benched: Benched) -> str:
    """One line for each size."""
    where = ", ".join(provider.removesuffix("ExecutionProvider") for provider in benched.providers)
    threads = "as many threads as onnxruntime takes" if not benched.threads else f"threads: {benched.threads}"
    table = format_table(_HEAD, map(_cells, benched.rows), right=range(1, len(_HEAD)))
    failed = [f"  at {_sizes(row)}: {row.error}" for row in benched.rows if row.error]
    return "\n".join([f"{benched.path}   {where}, {threads}", *table, *failed])


def _cells(row: BenchRow) -> tuple[str, ...]:
    if row.timing is None:
        return (_sizes(row), "failed", "", _figure(row.eager_ms), "", "")
    timing = row.timing
    figures = (timing.ms, timing.median_ms, row.eager_ms, timing.peak_mb)
    return (_sizes(row), *map(_figure, figures), str(timing.calls))


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _sizes(row: BenchRow) -> str:
    return format_sizes(row.sizes) or "no dims"


def bench_as_plain(benched: Benched) -> dict[str, Any]:
    rows = [
        {
            "sizes": dict(row.sizes),
            "elements": row.elements,
            "eager_ms": round(row.eager_ms, 4),
            "file": None if row.timing is None else as_plain_timing(row.timing),
            "error": row.error,
        }
        for row in benched.rows
    ]
    return {"path": benched.path, "providers": list(benched.providers), "threads": benched.threads, "rows": rows}


def plot_bench(benched: Benched, *, as_page: bool) -> str:
    """Latency and memory over the number of input elements: one SVG with the latency, or an HTML page with both."""
    timed = [(row, row.timing) for row in benched.rows if row.timing is not None]
    latency = line_chart(
        Labels(title=f"Latency of {benched.path}", x="elements of all inputs", y="ms"),
        {
            "file": [(row.elements, timing.ms) for row, timing in timed],
            "eager": [(row.elements, row.eager_ms) for row in benched.rows],
        },
    )
    if not as_page:
        return latency
    memory = line_chart(
        Labels(title=f"Memory of {benched.path}", x="elements of all inputs", y="MB"),
        {
            "peak": [(row.elements, timing.peak_mb) for row, timing in timed],
            "after loading": [(row.elements, timing.load_mb) for row, timing in timed],
        },
    )
    table = f"<pre>{escape(describe_bench(benched))}</pre>"
    head = (
        '<!doctype html><meta charset="utf-8"><meta name="generator" content="anyshape"><title>anyshape bench</title>'
    )
    return f"{head}\n{latency}\n{memory}\n{table}\n"
