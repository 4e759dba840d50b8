"""anyshape beside torch's two exporters on real models: export, file, latency, growth. The home of `make bench`.

    python benchmarks/speed/run.py [--only bert-base ...] [--small] [--again] [--exports]

Each model and exporter has a process of its own; exporters alternate. Figures go to results/speed.json after every
process, so that a run that was interrupted goes on where it stopped; --again measures anew, --exports leaves out latency and
growth. Files of a model are kept in .bench until its latency is measured. tables.py makes tables and plots at the end.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx
import tables
from growth import DIMS, LAYERS
from one_export import EXPORTERS
from process_memory import PeakMemory
from zoo_models import CASES, Case

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "speed.json"
FILES = HERE.parents[1] / ".bench"
TIMEOUT_S = 1800


def read_results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"versions": {}, "models": {}}


def write_results(results: dict[str, Any]) -> None:
    results["versions"] = versions()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def versions() -> dict[str, Any]:
    from importlib.metadata import version

    names = ("torch", "onnx", "onnxscript", "onnxruntime", "onnx-ir", "transformers", "numpy")
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    return {name: version(name) for name in names} | machine


def in_child(script: str, *arguments: str) -> dict[str, Any]:
    """What a script prints as its last line of JSON, with the peak memory of all its processes."""
    command = [sys.executable, str(HERE / script), *arguments]
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=told, stderr=errors, env=os.environ | {"OMP_NUM_THREADS": "1"})
        memory = PeakMemory(process.pid)
        if not memory.watch(process, TIMEOUT_S):
            process.kill()
            process.wait()
            return {"error": f"took longer than {TIMEOUT_S} s"}
        told.seek(0)
        errors.seek(0)
        lines = told.read().strip().splitlines()
        if process.returncode or not lines:
            last = (errors.read().strip().splitlines() or [""])[-1]
            return {"error": f"exit status {process.returncode}: {last[:300]}"}
        return json.loads(lines[-1]) | {"peak_mb": memory.peak_mb}


def chosen_cases(only: list[str], small: bool) -> list[Case]:
    cases = [case for case in CASES if not only or case.name in only]
    return [case for case in cases if not (small and case.is_large)]


def print_row(name: str, row: dict[str, Any]) -> None:
    cells = []
    for exporter in EXPORTERS:
        first = row.get(exporter, {}).get("first", row.get(exporter, {}))
        cells.append(
            f"{exporter} {first['cpu_s']:7.1f}" if "cpu_s" in first and "error" not in first else f"{exporter}  refused"
        )
    print(f"{name:16} cpu s: {'   '.join(cells)}", flush=True)


def describe_file(path: Path) -> dict[str, int]:
    """Nodes, those of subgraphs included, and bytes, those of external data included."""
    if not path.exists():
        return {}
    beside = [each for each in path.parent.glob(f"{path.name}*") if each != path]
    model = onnx.load(path, load_external_data=False)
    return {"nodes": _count_nodes(model.graph), "bytes": sum(each.stat().st_size for each in (path, *beside))}


def _count_nodes(graph: onnx.GraphProto) -> int:
    inside = [each.g for node in graph.node for each in node.attribute if each.type == onnx.AttributeProto.GRAPH]
    return len(graph.node) + sum(_count_nodes(each) for each in inside)


def measure_model(case: Case, results: dict[str, Any], options: argparse.Namespace) -> None:
    row = results["models"].setdefault(case.name, {})
    wanted = EXPORTERS if options.exports else (*EXPORTERS, "latency")
    if not options.again and all(each in row for each in wanted):
        return
    FILES.mkdir(exist_ok=True)
    for exporter in EXPORTERS:
        path = FILES / f"{case.name}-{exporter}.onnx"
        is_known = exporter in row and (options.exports or path.exists() or "error" in row[exporter].get("first", {}))
        if options.again or not is_known:
            row[exporter] = in_child("one_export.py", case.name, exporter, str(FILES)) | describe_file(path)
            write_results(results)
    if not options.exports:
        row["latency"] = in_child("latency.py", case.name, str(FILES))
        write_results(results)
        for path in FILES.glob(f"{case.name}-*"):
            path.unlink()


def measure_growth(results: dict[str, Any], again: bool) -> None:
    for kind, counts in (("layers", LAYERS), ("dims", DIMS)):
        rows = results.setdefault("growth", {}).setdefault(kind, [])
        if again:
            rows.clear()
        for count in counts:
            if count not in [row.get("count") for row in rows]:
                rows.append({"count": count} | in_child("growth.py", kind, str(count)))
                write_results(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], choices=[case.name for case in CASES], metavar="MODEL")
    parser.add_argument("--small", action="store_true", help="leave out the model of 2 GB")
    parser.add_argument("--again", action="store_true", help="measure also what results/speed.json holds")
    parser.add_argument("--exports", action="store_true", help="leave out latency and growth")
    options = parser.parse_args()
    # As pip installs it: torch's own files have bytecode, and without it each process would compile ours anew.
    compileall.compile_dir(HERE.parents[1] / "src" / "anyshape", quiet=1)
    results = read_results()
    for case in chosen_cases(options.only, options.small):
        measure_model(case, results, options)
        print_row(case.name, results["models"][case.name])
    if not options.only and not options.exports:
        measure_growth(results, options.again)
    tables.main()


if __name__ == "__main__":
    main()
