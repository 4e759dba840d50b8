"""Files of the corpus run by OpenVINO, and compared with eager: how many are equal, and what differs?

    python benchmarks/deploy/openvino_corpus.py CORPUS                 30 files, one process each
    python benchmarks/deploy/openvino_corpus.py CORPUS -k rnn --count 5

Each case is exported by anyshape, then `anyshape.check(..., runtime="openvino")` compares OpenVINO's answers with the model
over the domain, and runs the file outside its contract as well. Cases that anyshape refuses are left out. Goes on where it
stopped (--again starts anew). Writes benchmarks/results/openvino_corpus.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import anyshape
from anyshape.checking.contract_inputs import run_outside
from anyshape.contract import read_contract
from anyshape.findings import AnyshapeError
from anyshape.runtime.openvino_session import openvino_version

RESULTS = Path(__file__).parent.parent / "results" / "openvino_corpus.json"
SO_FAR = Path(tempfile.gettempdir()) / "anyshape-openvino-corpus.jsonl"
LIMIT_S = 600
BUDGET_S = 10.0


def main() -> None:
    arguments = parsed()
    sys.path[:0] = [str(arguments.corpus), str(Path(__file__).parent.parent)]
    cases = [case for case in importlib.import_module("corpus").CASES if case.truth == "exportable"]
    cases = [case for case in cases if arguments.k in f"{case.name} {case.kind}"]
    if arguments.again:
        SO_FAR.unlink(missing_ok=True)
    known = {row["case"]: row for row in map(json.loads, SO_FAR.read_text().splitlines())} if SO_FAR.exists() else {}
    rows: list[dict[str, Any]] = []
    # Every third case first: the kinds of the corpus stand beside one another.
    for case in [*cases[::3], *cases[1::3], *cases[2::3]]:
        if len(rows) >= arguments.count:
            break
        row = known.get(case.name) or in_a_process(case)
        if case.name not in known:
            with SO_FAR.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if row["outcome"] != "no file":
            rows.append(row)
            print(f"{len(rows):3} {row['case']:32} {row['outcome']:10} {row.get('finding', '')[:100]}", flush=True)
    print(summary(rows))
    if not arguments.k:
        RESULTS.write_text(json.dumps({"openvino": openvino_version(), "rows": rows}, indent=1) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("-k", default="")
    parser.add_argument("--again", action="store_true")
    return parser.parse_args()


def in_a_process(case: Any) -> dict[str, Any]:
    """The row of one case; a process that crashes or hangs is a row, too."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=lambda: theirs.send(row_of(case)))
    process.start()
    try:
        if ours.poll(LIMIT_S) and process.is_alive():
            return ours.recv()
        return {"case": case.name, "outcome": "no file", "finding": f"the process ended with {process.exitcode}"}
    except EOFError:
        return {"case": case.name, "outcome": "no file", "finding": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def row_of(case: Any) -> dict[str, Any]:
    from corpus_plugin import function_of_sizes

    warnings.simplefilter("ignore")
    inputs = function_of_sizes(case)
    torch.manual_seed(0)
    model = case.build().eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        try:
            anyshape.export(model, inputs, path, where=case.where, state="frozen", verify="quick")
        except AnyshapeError as error:
            return {"case": case.name, "outcome": "no file", "finding": str(error).partition("\n")[0]}
        contract, _ = read_contract(path)
        row: dict[str, Any] = {"case": case.name, "kind": case.kind, "opset": contract.opset}
        try:
            verdict = anyshape.check(path, model, inputs, where=case.where, runtime="openvino", budget=BUDGET_S)
            row |= {"outcome": "equal", "sizes": len(verdict.tried)}
        except anyshape.PromiseBroken as broken:
            finding = broken.finding
            is_rejected = finding.name in ("runtime-refuses", "runtime-died")
            row |= {"outcome": "refused" if is_rejected else "differs", "finding": f"{finding.code} {finding.what}"}
            row["why"] = finding.why[:300]
        outside = run_outside(path, contract, "openvino")
        return {**row, "outside": len(outside), "answered_outside": sum(run.answered for run in outside)}


def summary(rows: list[dict[str, Any]]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    outside = sum(row.get("outside", 0) for row in rows)
    answered = sum(row.get("answered_outside", 0) for row in rows)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    asked = f"{answered} of {outside} calls outside the contract answered"
    return f"{len(rows)} files in OpenVINO {openvino_version()}: {told}; {asked}"


if __name__ == "__main__":
    main()
