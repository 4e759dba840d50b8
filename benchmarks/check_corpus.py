"""Does `anyshape check` flag the files that torch.onnx.export gets wrong, and no others?

    python benchmarks/check_corpus.py CORPUS                       all cases, three exporters
    python benchmarks/check_corpus.py CORPUS -e torchscript -c a,b

CORPUS is the folder of the corpus' `run.py`, whose exporters and whose verdict (PASS, WRONG, ...) are used as they are.
Each file is checked at the case's own sizes and at sizes of our choice; every flag elsewhere is replayed at its sizes.
Writes benchmarks/results/check_corpus.json. It takes an hour or more: rows are kept as they come, and with --resume those
that are there are not made again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from plain_paths import plain

RESULTS = Path(__file__).parent / "results" / "check_corpus.json"
SO_FAR = Path(tempfile.gettempdir()) / "anyshape-check-corpus.jsonl"
EXPORTERS = ("torchscript", "dynamo", "dynamo_auto")
LIMIT_S = 300
BUDGET_S = 20.0


def main() -> None:
    arguments = parsed()
    sys.path[:0] = [str(arguments.corpus), str(Path(__file__).parent)]
    run = importlib.import_module("run")
    importlib.import_module("anyshape.exporting.pipeline")  # once, here: what follows are forks
    cases = [case for case in run.corpus.CASES if not arguments.cases or case.name in arguments.cases.split(",")]
    kept = kept_rows() if arguments.resume else {}
    rows = []
    for exporter in arguments.exporters.split(","):
        for case in cases:
            is_kept = (case.name, exporter) in kept
            rows.append(kept[case.name, exporter] if is_kept else in_a_fork(run, case, exporter))
            print(said(rows[-1]), flush=True)
            if not is_kept and not arguments.cases:
                with SO_FAR.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(summary(rows))
    if not arguments.cases:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(plain({"summary": summary(rows).splitlines(), "rows": rows}), indent=1) + "\n")
        SO_FAR.unlink(missing_ok=True)


def kept_rows() -> dict[tuple[str, str], dict[str, Any]]:
    if not SO_FAR.exists():
        return {}
    rows = [json.loads(line) for line in SO_FAR.read_text().splitlines()]
    return {(row["case"], row["exporter"]): row for row in rows}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-e", "--exporters", default=",".join(EXPORTERS))
    parser.add_argument("-c", "--cases", default="")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def in_a_fork(run: Any, case: Any, exporter: str) -> dict[str, Any]:
    """An exporter may crash, hang, or leave torch in another state."""
    ours, theirs = multiprocessing.Pipe(False)
    process = multiprocessing.get_context("fork").Process(target=send_row, args=(theirs, run, case, exporter))
    process.start()
    theirs.close()
    row: dict[str, Any] = {"case": case.name, "exporter": exporter, "runner": "died"}
    with contextlib.suppress(EOFError):
        if ours.poll(LIMIT_S):
            row = ours.recv()
    process.kill()
    process.join()
    return row


def send_row(pipe: Any, run: Any, case: Any, exporter: str) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the exporters' C++ writes there too
        os.dup2(nowhere, stream)
    warnings.simplefilter("ignore")
    try:
        pipe.send(row_of(run, case, exporter))
    except Exception as error:  # a fault of ours: it must stand in the table
        pipe.send({"case": case.name, "exporter": exporter, "runner": "OUR_FAULT", "message": repr(error)})
    pipe.close()
    os._exit(0)


def row_of(run: Any, case: Any, exporter: str) -> dict[str, Any]:
    row: dict[str, Any] = {"case": case.name, "exporter": exporter, "truth": case.truth}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        args, kwargs = case.examples[0]
        names = [name for name, value in case.leaves(args, kwargs) if hasattr(value, "shape")]
        write = run.get_exporter(exporter, "")
        try:
            write(
                case.make(),
                run.clone(args),
                run.clone(kwargs),
                dynamic=case.dynamic,
                names=names,
                path=str(path),
                case=case,
            )
        except BaseException as error:
            return {**row, "runner": "EXPORT_FAIL", "message": plain(str(error))[:200]}
        kept = Path(folder) / "kept"
        shutil.copytree(folder, kept, ignore=lambda _, inside: ["kept"] if "kept" in inside else [])
        run.get_exporter = lambda *_: lambda *a, path, **k: shutil.copytree(kept, Path(path).parent, dirs_exist_ok=True)
        row["runner"] = run.run_one(case, exporter, "")["status"]
        return {**row, **checked(case, path)}


def checked(case: Any, path: Path) -> dict[str, Any]:
    from corpus_plugin import function_of_sizes

    from anyshape.exporting import pipeline
    from anyshape.inputs import declare
    from anyshape.verify import VerifyOptions

    module = case.make()
    declared = declare(module, function_of_sizes(case), where=case.where)
    parameters = list(inspect.signature(case.inputs).parameters)
    began = time.perf_counter()

    def flags(sizes: dict[str, int] | None, seed: int = 0) -> list[dict[str, Any]]:
        options = VerifyOptions(budget_s=BUDGET_S, seed=seed)
        verdict, findings = pipeline.check(path, module, declared, options, sizes, lambda *_: None)
        used = verdict.smallest_failure.seed if verdict.smallest_failure is not None else seed
        return [{**flag(finding), "seed": used} for finding in findings if finding.severity.value == "error"]

    own = []
    for size in case.sizes:
        given = dict(zip(parameters, size if isinstance(size, tuple) else (size,), strict=True))
        own += flags({name: given[name] for name in declared.domain.names if name in given})
    chosen = flags(None)
    replayed = [bool(flags(found["sizes"], found["seed"])) for found in chosen if found["sizes"]]
    return {"own": own, "chosen": chosen, "replayed": all(replayed), "seconds": round(time.perf_counter() - began, 1)}


def flag(finding: Any) -> dict[str, Any]:
    source = finding.source or (finding.where if hasattr(finding.where, "line") else None)
    return {
        "code": finding.code,
        "sizes": dict(finding.sizes or {}),
        "where": str(finding.where or ""),
        "line": f"{source.file}:{source.line}" if source else "",
        "why": finding.why,
    }


def said(row: dict[str, Any]) -> str:
    found = row.get("chosen") or row.get("own") or []
    text = f"{row['exporter']:12} {row['case']:28} {row['runner']:13}"
    if "own" not in row:
        return text
    first = f" {found[0]['code']} at {found[0]['sizes']} {found[0]['where']}" if found else ""
    own, chosen = ("FLAG" if row[which] else "pass" for which in ("own", "chosen"))
    return f"{text} own {own}, chosen {chosen} {row['seconds']} s{first}"


def summary(rows: list[dict[str, Any]]) -> str:
    lines = []
    for exporter in dict.fromkeys(row["exporter"] for row in rows):
        mine = [row for row in rows if row["exporter"] == exporter and "own" in row]
        wrong = [row for row in mine if row["runner"] == "WRONG"]
        right = [row for row in mine if row["runner"] == "PASS"]
        flagged = [row for row in wrong if row["own"] or row["chosen"]]
        alarms = [row["case"] for row in right if row["own"]]
        missed = [row["case"] for row in wrong if row not in flagged]
        named = sum(any(found["line"] for found in row["own"] + row["chosen"]) for row in flagged)
        elsewhere = [row["case"] for row in right if row["chosen"] and not row["own"]]
        unreplayed = [row["case"] for row in mine if not row["replayed"]]
        ours = [row["case"] for row in rows if row["exporter"] == exporter and row["runner"] in ("OUR_FAULT", "died")]
        lines += [
            f"{exporter}: {len(flagged)} of {len(wrong)} wrong files flagged ({named} with a line), missed {missed}",
            f"  of {len(right)} that pass, flagged at the corpus's own sizes: {alarms}; elsewhere: {elsewhere}",
            f"  flags that do not replay: {unreplayed}; not checked through a fault of ours: {ours}",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
