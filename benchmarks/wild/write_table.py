"""Write docs/reference/wild.md from the results of the wild suite: models of packages of PyPI, three exporters.

    python benchmarks/wild/write_table.py RESULTS.jsonl BASELINE.json docs/reference/wild.md

The last line of each exporter and model counts. Where the results have no line of torch's exporters, their status is that of
the baseline, without a time.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

EXPORTERS = {"anyshape": "anyshape", "dynamo": "torch, dynamo", "torchscript": "torch, TorchScript"}
WORDS = {
    "PASS": "right",
    "NARROW": "narrower than eager",
    "WRONG": "**wrong**",
    "RUNTIME_FAIL": "fails at other sizes",
    "EXPORT_FAIL": "refused",
    "TIMEOUT": "over the time limit",
    "CRASH": "crashed",
}
PAGE = """# Models of packages from PyPI

Models as their packages build them, from a config with random weights; none was written for an exporter. Each was declared
by an example and the names of its open axes, without ranges, and its file was run by plain onnxruntime at other sizes and
compared with the module. `make wild` makes this page. Commit {commit}, torch {torch},
onnxruntime {onnxruntime}; CPU seconds of one export on one core.

{counts}

| model | package | anyshape | contract | torch, dynamo | torch, TorchScript |
|---|---|---|---|---|---|
{rows}
"""


def main() -> int:
    results, baseline, page = map(Path, sys.argv[1:4])
    rows = read_rows(results, json.loads(baseline.read_text()))
    page.write_text(render(rows))
    for name in EXPORTERS:
        print(name, dict(Counter(row[name]["status"] for row in rows.values())))
    return 0


def read_rows(results: Path, baseline: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    """model -> exporter -> what came of it, in the order of the baseline."""
    rows: dict[str, dict[str, Any]] = {
        name: {exporter: {"status": status} for exporter, status in of.items() if exporter != "anyshape"}
        for name, of in baseline.items()
    }
    for line in results.read_text().splitlines():
        result = json.loads(line)
        rows.setdefault(result["name"], {})[result["exporter"]] = result
    return {name: row for name, row in rows.items() if set(EXPORTERS) <= set(row)}


def render(rows: dict[str, dict[str, Any]]) -> str:
    counts = []
    for name, words in EXPORTERS.items():
        found = Counter(row[name]["status"] for row in rows.values())
        told = ", ".join(f"{number} {WORDS.get(status, status)}" for status, number in found.most_common())
        counts.append(f"- {words}: {told}")
    lines = [
        "| "
        + " | ".join(
            [
                model,
                _package(row["anyshape"].get("package", "")),
                _outcome(row["anyshape"]),
                _contract(row["anyshape"]),
                _outcome(row["dynamo"]),
                _outcome(row["torchscript"]),
            ]
        )
        + " |"
        for model, row in rows.items()
    ]
    return PAGE.format(
        commit=_commit(),
        torch=importlib.metadata.version("torch"),
        onnxruntime=importlib.metadata.version("onnxruntime"),
        counts="\n".join(counts),
        rows="\n".join(lines),
    )


def _outcome(result: dict[str, Any]) -> str:
    words = WORDS.get(result["status"], result["status"])
    codes = " ".join(dict.fromkeys(result.get("codes") or []))
    seconds = f", {result['cpu']:.0f} s" if result.get("cpu") else ""
    return f"{words}{f' {codes}' if codes else ''}{seconds}"


def _contract(result: dict[str, Any]) -> str:
    if "dims" not in result:
        return ""
    dims = [f"{low}..{'' if high is None else high}" for _, low, high, _ in result["dims"]]
    named = [f"{dim[0]} {span}" for dim, span in zip(result["dims"], dims, strict=True)]
    return f"`{', '.join(named)}`, {result.get('strategy')}"


def _package(name: str) -> str:
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return name


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
