"""Does verification ever call a right export wrong?

    python benchmarks/verify_false_alarms.py CORPUS              at least 200 exports; rows are kept as they come
    python benchmarks/verify_false_alarms.py CORPUS --resume     goes on where it was stopped
    python benchmarks/verify_false_alarms.py CORPUS --report     writes what it has so far
    python benchmarks/verify_false_alarms.py CORPUS -k bfloat16  some of them; writes no figures

The cases of the corpus (the folder of its `run.py`), the models of tests/sabotage, and random modules in single, double,
half precision and bfloat16. Each is exported, which verifies it; with --twice the file is checked once more, with other
draws. What is called wrong is compared by a judge that shares nothing with verification: onnxruntime against eager, at a loose
tolerance. Writes benchmarks/results/verify_false_alarms.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_paths import plain
from random_modules import DTYPES, RandomModule, random_inputs

import anyshape
from anyshape.runtime import RuntimeRejected

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "verify_false_alarms.json"
SO_FAR = Path(tempfile.gettempdir()) / "anyshape-false-alarms.jsonl"
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "sabotage")]
LIMIT_S = 180
RANDOM_MODULES = {"float32": 48, "float64": 14, "float16": 30, "bfloat16": 30}
LOOSE = {"float32": 1e-2, "float64": 1e-4, "float16": 0.1, "bfloat16": 0.3}


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[], torch.nn.Module]
    inputs: Any
    where: tuple[str, ...] = ()


def main() -> None:
    arguments = parsed()
    if arguments.report:
        write(list(kept_rows().values()), is_complete=False)
        return
    torch.set_num_threads(1)
    warm_up()
    kept = kept_rows() if arguments.resume else {}
    if not arguments.resume:
        SO_FAR.unlink(missing_ok=True)
    rows = []
    for case in cases(arguments.corpus):
        if arguments.only in case.name:
            rows.append(kept.get(case.name) or in_a_fork(case, arguments.twice))
            print(f"{rows[-1]['outcome']:12} {case.name} {rows[-1].get('why', '')}"[:200], flush=True)
            if case.name not in kept and not arguments.only:
                with SO_FAR.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(figures(rows)["summary"])
    if not arguments.only:
        write(rows, is_complete=True)
        SO_FAR.unlink(missing_ok=True)


def write(rows: list[dict[str, Any]], is_complete: bool) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(plain({"is complete": is_complete, **figures(rows)}), indent=1) + "\n")
    print(RESULTS.read_text())


def warm_up() -> None:
    """What an export imports is imported once, here: what follows are forks."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.onnx"
        anyshape.export(torch.nn.Linear(3, 2), lambda b=2: torch.randn(b, 3), path)
        anyshape.check(path, torch.nn.Linear(3, 2), lambda b=2: torch.randn(b, 3), rtol=1e9, atol=1e9)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-k", dest="only", default="")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--report", action="store_true", help="write the figures of the rows that are there, and end")
    parser.add_argument("--twice", action="store_true", help="check each file once more, with other draws")
    return parser.parse_args()


def kept_rows() -> dict[str, dict[str, Any]]:
    lines = SO_FAR.read_text().splitlines() if SO_FAR.exists() else []
    return {
        row["name"]: row for row in map(json.loads, lines) if row["outcome"] not in ("our fault", "no time", "died")
    }


def cases(corpus: Path) -> Iterator[Case]:
    sys.path.insert(0, str(corpus))
    from corpus_plugin import function_of_sizes
    from exported import SUBJECTS

    for subject in SUBJECTS:
        yield Case(f"sabotage/{subject.name}", subject.build, subject.inputs, subject.where)
    for dtype, count in RANDOM_MODULES.items():
        for seed in range(count):
            yield Case(
                f"random/{dtype}/{seed}",
                lambda seed=seed, dtype=dtype: RandomModule(seed, DTYPES[dtype]),
                random_inputs(DTYPES[dtype]),
                ("b <= 8", "s <= 40"),
            )
    for case in importlib.import_module("corpus").CASES:
        yield Case(f"corpus/{case.name}", case.make, function_of_sizes(case), tuple(case.where))


def in_a_fork(case: Case, is_twice: bool) -> dict[str, Any]:
    ours, theirs = multiprocessing.Pipe(False)
    process = multiprocessing.get_context("fork").Process(target=send_row, args=(theirs, case, is_twice))
    process.start()
    theirs.close()
    row: dict[str, Any] = {"name": case.name, "outcome": "no time"}
    try:
        if ours.poll(LIMIT_S):
            row = ours.recv()
    except EOFError:
        row["outcome"] = "died"
    process.kill()
    process.join()
    return row


def send_row(pipe: Any, case: Case, is_twice: bool) -> None:
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            row = judged(case, Path(folder) / "m.onnx", is_twice)
        except Exception as error:
            row = {"outcome": "our fault", "why": repr(error)[:300]}
    pipe.send({"name": case.name, **row, "seconds": round(time.perf_counter() - began, 1)})
    pipe.close()


def judged(case: Case, path: Path, is_twice: bool) -> dict[str, Any]:
    module = case.build()
    try:
        anyshape.export(module, case.inputs, path, where=case.where)
    except anyshape.AnyshapeError as error:
        if not any(finding.code.startswith("AS3") for finding in error.findings):
            return {"outcome": "refused", "why": error.findings[0].code}
        return blamed(case, module, path, error)
    if is_twice:
        try:
            anyshape.check(path, module, case.inputs, where=case.where, seed=1, budget=20.0)
        except anyshape.AnyshapeError as error:
            return blamed(case, module, path, error)
    return {"outcome": "right"}


def blamed(case: Case, module: torch.nn.Module, path: Path, error: anyshape.AnyshapeError) -> dict[str, Any]:
    """Who is right? Only a file that was written can be compared."""
    finding = error.findings[0]
    why = plain(f"{finding.code} {finding.what} {finding.why}")[:300]
    if finding.code == "AS306":  # a type that the operator, or onnxruntime, does not have: no runtime takes such a file
        return {"outcome": "refused", "why": why}
    if not path.exists():
        try:
            anyshape.export(module, case.inputs, path, where=case.where, force=True)
        except anyshape.AnyshapeError:
            return {"outcome": "refused", "why": why}
    try:
        is_right = agrees(case, module, path)
    except RuntimeRejected as rejected:  # a type that onnxruntime has no kernel for
        return {"outcome": "refused", "why": plain(str(rejected))[:200]}
    return {"outcome": "FALSE ALARM" if is_right else "rightly blamed", "why": why}


def agrees(case: Case, module: torch.nn.Module, path: Path) -> bool:
    from anyshape.inputs import declare, flatten_outputs
    from anyshape.runtime import RunError, Session
    from anyshape.verify.file_copies import copy_bfloat16_file
    from anyshape.verify.tensors import to_array

    declared = declare(module, case.inputs, where=case.where)
    with tempfile.TemporaryDirectory() as folder:
        widened = copy_bfloat16_file(str(path), folder)
        session = Session(widened.path if widened else path)
    for seed in range(5):
        inputs = declared.make(declared.example_sizes, seed)
        with torch.no_grad():
            expected = [to_array(leaf) for _, leaf in flatten_outputs(declared.call(module.eval(), inputs))]
        feeds = declared.feeds(inputs)
        try:
            actual = session.run(widened.feeds(feeds) if widened else feeds)
            actual = widened.outputs(actual) if widened else actual
        except RunError:
            return False
        if not all(map(is_alike, expected, actual)):
            return False
    return True


def is_alike(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype:
        return False
    loose = LOOSE.get(one.dtype.name, 0.0)
    one, other = one.astype(np.float64), other.astype(np.float64)
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=1.0))
    return one.shape == other.shape and np.allclose(one, other, rtol=loose, atol=loose * scale, equal_nan=True)


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    outcomes = Counter(row["outcome"] for row in rows)
    alarms = [row for row in rows if row["outcome"] == "FALSE ALARM"]
    right = [row for row in rows if row["outcome"] == "right"]
    kinds = Counter("/".join(row["name"].split("/")[:-1]) for row in right)
    return {
        "summary": f"{len(alarms)} false alarms on {len(right) + len(alarms)} right exports; {dict(outcomes)}",
        "right exports": dict(kinds),
        "false alarms": alarms,
        "others": [row for row in rows if row["outcome"] not in ("right", "FALSE ALARM")],
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }


if __name__ == "__main__":
    main()
