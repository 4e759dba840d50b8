"""results/speed.json -> the table in README.md, between its markers, and the plots of docs/explanation/performance.md.

python benchmarks/speed/tables.py        `make bench` does this at its end
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anyshape.report.benches import Labels, bar_chart, line_chart

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "speed.json"
PLOTS = ROOT / "docs" / "explanation" / "plots"
START, END = "<!-- bench: start -->", "<!-- bench: end -->"
_LARGE_MB = 1000
HEAD = """| model | `dynamo=True` | `dynamo=False` | anyshape, file | anyshape, verified | nodes | latency |
|---|---|---|---|---|---|---|"""


def cpu_s(row: dict[str, Any], exporter: str, which: str = "first") -> float | None:
    """CPU seconds of an export; None where the exporter refused."""
    export = row.get(exporter, {}).get(which) or {}
    return None if "error" in export else export.get("cpu_s")


def file_s(row: dict[str, Any], which: str = "first") -> float | None:
    """CPU seconds to our file without its comparison: of `verify="none"`, or, where that refuses, of a verified export
    without its comparisons."""
    if (alone := cpu_s(row, "unverified", which)) is not None:
        return alone
    whole = cpu_s(row, "anyshape", which)
    stages = (row.get("anyshape", {}).get(which) or {}).get("stages", {})
    return None if whole is None else whole - stages.get("comparing", {}).get("cpu_s", 0.0)


def latency_ratio(row: dict[str, Any]) -> float | None:
    """Geometric mean over the sizes: our milliseconds by those of the better file of torch that is right there."""
    ratios = []
    for size in row.get("latency", {}).get("rows", []):
        ours, others = (
            size["ms"].get("anyshape"),
            [size["ms"][each] for each in ("dynamo", "torchscript") if each in size["ms"]],
        )
        if ours and others:
            ratios.append(ours / min(others))
    return geometric_mean(ratios)


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _cell(value: float | None, form: str = ".1f") -> str:
    return "–" if value is None else format(value, form)


def _nodes(row: dict[str, Any]) -> str:
    counts = [row.get(exporter, {}).get("nodes") for exporter in ("anyshape", "dynamo")]
    return " / ".join("–" if count is None else str(count) for count in counts)


def table(models: dict[str, Any]) -> str:
    lines = [HEAD]
    for name, row in models.items():
        seconds = [cpu_s(row, "dynamo"), cpu_s(row, "torchscript"), file_s(row), cpu_s(row, "anyshape")]
        cells = [*map(_cell, seconds), _nodes(row), _cell(latency_ratio(row), ".2f")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", _summary(models), *_memory(models)])


def _summary(models: dict[str, Any]) -> str:
    both = [row for row in models.values() if cpu_s(row, "dynamo") and cpu_s(row, "anyshape")]
    alone = geometric_mean((file_s(row) or 0) / cpu_s(row, "dynamo") for row in both)
    whole = geometric_mean(cpu_s(row, "anyshape") / cpu_s(row, "dynamo") for row in both)
    again = [row for row in both if cpu_s(row, "anyshape", "second") and cpu_s(row, "dynamo", "second")]
    second = geometric_mean(cpu_s(row, "anyshape", "second") / cpu_s(row, "dynamo", "second") for row in again)
    return (
        f"Geometric means against `dynamo=True`: file {_cell(alone, '.2f')}, verified {_cell(whole, '.2f')}, "
        f"verified and second in its process {_cell(second, '.2f')}."
    )


def _memory(models: dict[str, Any]) -> list[str]:
    """Peak memory of models whose weights decide about it, as multiples of the weights."""
    lines = []
    for name, row in models.items():
        alone, verified = row.get("unverified", {}), row.get("anyshape", {})
        weights = verified.get("weights_mb", 0.0)
        if weights >= _LARGE_MB and "peak_mb" in alone and "peak_mb" in verified:
            beyond = max(0.0, (alone["peak_mb"] - alone["before_mb"]) / weights)
            lines.append(
                f"Peak memory of {name}, as a multiple of its weights ({weights / 1000:.1f} GB): without comparisons "
                f"{beyond:.2f} more than before the export, with the model loaded; verified "
                f"{verified['peak_mb'] / weights:.2f} in all processes together, the model included."
            )
    return lines


def write_readme(models: dict[str, Any]) -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    readme.write_text(f"{before}{START}\n{table(models)}\n{END}{after}", encoding="utf-8")


def write_plots(results: dict[str, Any]) -> None:
    PLOTS.mkdir(exist_ok=True)
    exports = {
        name: {
            each: value
            for each, value in (
                ("dynamo=True", cpu_s(row, "dynamo")),
                ("file", file_s(row)),
                ("verified", cpu_s(row, "anyshape")),
            )
            if value is not None
        }
        for name, row in results["models"].items()
    }
    (PLOTS / "exports.svg").write_text(bar_chart(Labels(title="CPU seconds of an export"), exports), encoding="utf-8")
    ratios = {name: {"ratio": ratio} for name, row in results["models"].items() if (ratio := latency_ratio(row))}
    title = "Latency in onnxruntime, as a multiple of the better file of torch"
    (PLOTS / "latency.svg").write_text(bar_chart(Labels(title=title), ratios), encoding="utf-8")
    for kind, rows in results.get("growth", {}).items():
        lines = {
            exporter: [
                (row["count"], row[exporter]["cpu_s"])
                for row in rows
                if "error" not in row.get(exporter, {"error": ""})
            ]
            for exporter in ("anyshape", "dynamo")
        }
        labels = Labels(title=f"Export time and the number of {kind}", x=kind, y="CPU s")
        (PLOTS / f"growth-{kind}.svg").write_text(line_chart(labels, lines), encoding="utf-8")


def main() -> None:
    results = json.loads(RESULTS.read_text())
    write_readme(results["models"])
    write_plots(results)
    print(table(results["models"]))


if __name__ == "__main__":
    main()
