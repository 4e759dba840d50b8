"""Ten families of transformers from tiny configs: `anyshape export hf:DIR` beside torch's exporter, judged independently.

Each export has a process of its own. A row has the files, whether they are kept, how many of the judge's sizes are right,
and CPU seconds of both exporters, without loading the model.

    python benchmarks/sources/run_families.py [bert gpt2 ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

SIZES = 8
LIMITS = {"samples": 2000}


def run_one(name: str, exporter: str, folder: str) -> dict[str, Any]:
    """Export a family in this process, and judge the files."""
    import judged_parts as judge
    import tiny_configs

    from anyshape import AnyshapeError, sources

    source = sources.resolve(f"hf:{tiny_configs.write_family(name, Path(folder))}")
    out = Path(folder) / "out"
    row: dict[str, Any] = {"files": len(source.parts), "error": ""}

    def with_anyshape() -> str:
        try:
            result = sources.export(source, out)
        except AnyshapeError as error:
            return str(error)
        return "" if result.is_kept else str(result.findings[0])

    def with_torch() -> str:
        out.mkdir()
        errors = [judge.export_with_torch(part, out / f"{part.name}.onnx") for part in source.parts]
        return "; ".join(filter(None, errors))

    row["error"], row["seconds"] = judge.cpu_seconds(with_anyshape if exporter == "anyshape" else with_torch)
    wrong, tried = [], 0
    for part in source.parts:
        path = out / f"{part.name}.onnx"
        for number, sizes in enumerate(judge.choose_sizes(part, LIMITS, SIZES, seed=7) if path.exists() else ()):
            tried += 1
            try:
                difference = judge.find_difference(part, path, sizes, seed=number)
            except Exception as error:
                difference = f"{type(error).__name__}: {str(error)[:100]}"
            wrong += [f"{part.name} at {sizes}: {difference}"] if difference else []
    return {**row, "tried": tried, "right": tried - len(wrong), "wrong": wrong[:2]}


def run_in_child(name: str, exporter: str) -> dict[str, Any]:
    """The row of one family and exporter, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--one", name, exporter, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"files": 0, "error": done.stderr.strip()[-300:], "seconds": 0.0, "tried": 0, "right": 0, "wrong": []}
    return json.loads(done.stdout.splitlines()[-1])


def main(names: list[str]) -> int:
    """Print the table; the status is 1 where one of our exports is not kept, not right, or takes more than 1.5x."""
    import tiny_configs

    failed, ratios = [], []
    print("| family | files | anyshape | right | CPU s | torch | right | CPU s | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names or list(tiny_configs.FAMILIES):
        ours, theirs = run_in_child(name, "anyshape"), run_in_child(name, "torch")
        ratio = ours["seconds"] / theirs["seconds"] if theirs["seconds"] else float("nan")
        ratios.append(ratio)
        cells = [[outcome(row), f"{row['right']}/{row['tried']}", f"{row['seconds']:.1f}"] for row in (ours, theirs)]
        print("|", " | ".join([name, str(ours["files"]), *cells[0], *cells[1], f"{ratio:.2f}"]), "|", flush=True)
        for who, row in (("anyshape", ours), ("torch", theirs)):
            for text in filter(None, [row["error"], *row["wrong"]]):
                print(f"  {name}, {who}: {text[:300]}", file=sys.stderr)
        if ours["error"] or ours["right"] < ours["tried"] or not ours["tried"]:
            failed.append(name)
    print(f"\nnot kept or not right: {', '.join(failed) or 'none'}; worst ratio {max(ratios):.2f}")
    return 1 if failed or max(ratios) > 1.5 else 0


def outcome(row: dict[str, Any]) -> str:
    return "refused" if row["error"] else "kept"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        warnings.simplefilter("ignore")
        print(json.dumps(run_one(*sys.argv[2:5])))
    else:
        sys.exit(main(sys.argv[1:]))
