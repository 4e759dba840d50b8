"""What `anyshape bench` measured: as a table, as JSON, and as charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from anyshape.records.benched import Benched, BenchRow
from anyshape.report.charts import Labels, line_chart
from anyshape.runtime.timing import as_plain_timing

_HEAD = ("sizes", "file ms", "median", "eager ms", "peak MB", "calls")


def describe_bench(benched: Benched) -> str:
    """One line for each size."""
    where = ", ".join(provider.removesuffix("ExecutionProvider") for provider in benched.providers)
    threads = "as many threads as onnxruntime takes" if not benched.threads else f"threads: {benched.threads}"
    lines = [_HEAD, *(_cells(row) for row in benched.rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(_HEAD))]
    table = ["  " + _aligned(line, widths) for line in lines]
    failed = [f"  at {_sizes(row)}: {row.error}" for row in benched.rows if row.error]
    return "\n".join([f"{benched.path}   {where}, {threads}", *table, *failed])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return "  ".join(
        [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
    )


def _cells(row: BenchRow) -> tuple[str, ...]:
    if row.timing is None:
        return (_sizes(row), "failed", "", _figure(row.eager_ms), "", "")
    timing = row.timing
    figures = (timing.ms, timing.median_ms, row.eager_ms, timing.peak_mb)
    return (_sizes(row), *map(_figure, figures), str(timing.calls))


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _sizes(row: BenchRow) -> str:
    return ", ".join(f"{name}={size}" for name, size in row.sizes.items()) or "no dims"


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
    return f'<!doctype html><meta charset="utf-8"><title>anyshape bench</title>\n{latency}\n{memory}\n{table}\n'
