"""Exports every feature in a process of its own, compares the file with eager at other sizes, and writes a page.

python benchmarks/features/run.py                  all, and docs/reference/torch-features.md
python benchmarks/features/run.py --only cond      those with this in their name or group; no page
python benchmarks/features/run.py --resume         keeps the rows of .features.jsonl, runs the others, and writes the page
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import anyshape
from features import caches, flow, forms, hard, language, loose  # noqa: F401 - they list their features
from features.feature import FEATURES, Case, Feature
from features.judge import differs
from features.page import write_page

_LIMIT_S = 300
_KEPT = Path(__file__).parents[2] / ".features.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--resume", action="store_true")
    chosen = parser.parse_args()
    if not chosen.only and not chosen.resume:
        _KEPT.unlink(missing_ok=True)
    kept = _read_kept()
    for feature in FEATURES:
        is_chosen = chosen.only in feature.name or chosen.only == feature.group
        if not is_chosen or (chosen.resume and feature.name in kept):
            continue
        kept[feature.name] = result = _run_apart(feature)
        with _KEPT.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"name": feature.name, **result}) + "\n")
        print(
            f"{feature.group:28} {feature.name:60} {result['seconds']:5.0f} s  {result['status']}  {result['text']}",
            flush=True,
        )
    if not chosen.only:
        write_page([(feature, kept[feature.name]) for feature in FEATURES])
    return int(any(result["status"] in ("wrong", "crashed") for result in kept.values()))


def _read_kept() -> dict[str, dict[str, Any]]:
    """The last result of each feature."""
    lines = _KEPT.read_text(encoding="utf-8").splitlines() if _KEPT.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def _run_apart(feature: Feature) -> dict[str, Any]:
    """The result of a process of its own, forked with torch already loaded."""
    began = time.monotonic()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(feature, theirs))
    process.start()
    theirs.close()
    found: dict[str, Any] = {"status": "slow", "text": f"no answer in {_LIMIT_S} s"}
    try:
        if ours.poll(_LIMIT_S):
            found = ours.recv()
    except EOFError:
        found = {"status": "crashed", "text": "the process ended without a result"}
    finally:
        process.terminate()
        process.join()
    return {**found, "seconds": round(time.monotonic() - began, 1), "commit": _commit()}


@functools.cache
def _commit() -> str:
    """The commit that is checked out; `--resume` keeps rows of earlier ones, and the page counts them."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=_KEPT.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _answer(feature: Feature, connection: Connection) -> None:
    try:
        connection.send(run(feature.make()))
    except Exception as error:
        connection.send({"status": "crashed", "text": f"{type(error).__name__}: {str(error)[:200]}"})


def run(case: Case) -> dict[str, str]:
    """Exports one case and compares the file at the other sizes."""
    inputs = anyshape.Inputs(case.args, case.kwargs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        try:
            result = anyshape.export(case.model, inputs, path, dynamic=case.dynamic, **case.options)
        except anyshape.AnyshapeError as error:
            status = "as expected" if error.finding.code == case.expects else "refused"
            return {"status": status, "text": f"{error.finding.code} {error.finding.what}"}
        difference = differs(case, path)
        notes = "; ".join(f"{finding.code} {finding.what}" for finding in result.findings)
    if difference:
        return {"status": "wrong", "text": difference}
    return {"status": "right", "text": notes}


if __name__ == "__main__":
    sys.exit(main())
