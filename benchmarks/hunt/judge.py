"""Export every model of the hunt in a process of its own, and judge the files independently of anyshape.

    PYTHONPATH=../../src python judge.py causes --out causes.jsonl --jobs 2 [--match state] [--label main]

The anyshape on PYTHONPATH is the one that exports. Models that the output has already are left out, unless --again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from registry import Model, load_set

HERE = Path(__file__).parent
OUTCOMES = ("KEPT_RIGHT", "KEPT_WRONG", "KEPT_FAILS", "REFUSED", "TIMEOUT", "CRASH", "NOTHING_COMPARED")


def main() -> None:
    options = _options()
    models = {
        key: model
        for key, model in load_set(options.set).items()
        if options.match in key or options.match == model.theme
    }
    models = dict(list(models.items())[options.first :: options.every])
    out = Path(options.out)
    done = {row["key"] for row in read_rows(out)} if not options.again else set()
    todo = [(key, model) for key, model in models.items() if key not in done][: options.most]
    lock, began = Lock(), time.monotonic()

    def work(item: tuple[str, Model]) -> None:
        key, model = item
        row = judge(options, key, model)
        with lock, out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{time.monotonic() - began:6.0f} s  {row['outcome']:16} {key}  {_because(row)}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, todo))
    rows = {row["key"]: row for row in read_rows(out)}
    print_table([rows[key] for key in models if key in rows])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="causes, hunt, second, library, all, or the name of one file")
    parser.add_argument("--out", required=True, help="JSON lines, one a model; a run that was stopped goes on there")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--match", default="", help="only models with this in their name, or of this theme")
    parser.add_argument("--most", type=int, default=None, help="at most so many models")
    parser.add_argument("--every", type=int, default=1, help="a sample: every so many-th model")
    parser.add_argument(
        "--first", type=int, default=0, help="with --every: where the sample, or this machine's share, begins"
    )
    parser.add_argument("--label", default="", help="a word that goes into every row, such as a version")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each model")
    parser.add_argument("--memory", type=float, default=16.0, help="GiB of address space for each model; 0: no limit")
    parser.add_argument("--options", default="{}", help='more arguments of export as JSON: \'{"state": "outputs"}\'')
    parser.add_argument("--again", action="store_true", help="also models that the output has")
    return parser.parse_args()


def judge(options: argparse.Namespace, key: str, model: Model) -> dict[str, Any]:
    """The row of one model."""
    row: dict[str, Any] = {"key": key, "theme": model.theme, "trap": model.trap, "label": options.label}
    row |= {"true_refusal": model.true_refusal, "unproved_expected": model.unproved}
    with tempfile.TemporaryDirectory() as folder:
        result, errors = Path(folder) / "row.json", Path(folder) / "stderr.txt"
        began = time.monotonic()
        with errors.open("w") as stderr:
            code = _run_child([sys.executable, str(HERE / "one.py"), options.set, key, str(result)], stderr, options)
        found = json.loads(result.read_text()) if result.exists() else {"phase": "starting"}
        if found["phase"] != "done":
            found["words"] = f"while {found['phase']}: " + (
                errors.read_text()[-600:] if code is not None else "time limit"
            )
            found["outcome"] = _outcome_of_death(code, found["phase"])
        return row | found | {"total_s": round(time.monotonic() - began, 1)}


def _outcome_of_death(code: int | None, phase: str) -> str:
    if code is None:
        return "TIMEOUT"
    return "KEPT_FAILS" if phase == "judging" and code < 0 else "CRASH"


def _run_child(command: list[str], stderr: Any, options: argparse.Namespace) -> int | None:
    """The exit status, or None where the time limit ended the child and its own children."""

    def limit_memory() -> None:
        if options.memory:
            size = int(options.memory * 2**30)
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

    environment = {"OMP_NUM_THREADS": "1", **os.environ, "HUNT_OPTIONS": options.options}
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=limit_memory,
        cwd=HERE,
        env=environment | {"PYTHONPATH": _absolute(environment.get("PYTHONPATH", ""))},
    )
    try:
        return process.wait(options.limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _absolute(path: str) -> str:
    return os.pathsep.join(str(Path(part).resolve()) for part in path.split(os.pathsep) if part)


def read_rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _because(row: dict[str, Any]) -> str:
    if row.get("failures"):
        first = row["failures"][0]
        return f"{first['kind']} at {first['sizes']} ({first['values']}): {first['words'][:110]}"
    if row["outcome"].startswith("KEPT"):
        return f"{row.get('strategy')} proved={row.get('proved')} compared={row.get('compared')} {row.get('codes')}"
    return row.get("words", "").strip().split("\n")[0][:150]


def print_table(rows: list[dict[str, Any]]) -> None:
    """Counts by theme, then what is not right, then untrue refusals by code."""
    by_theme: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_theme[row["theme"]][row["outcome"]] += 1
        by_theme["all"][row["outcome"]] += 1
    width = max(map(len, by_theme), default=4)
    print("\n" + " ".join(["theme".ljust(width), *(outcome.rjust(16) for outcome in OUTCOMES)]))
    for theme in [*(name for name in by_theme if name != "all"), *(["all"] if rows else [])]:
        print(" ".join([theme.ljust(width), *(str(by_theme[theme][outcome]).rjust(16) for outcome in OUTCOMES)]))
    for outcome in OUTCOMES[1:]:
        for row in rows:
            if row["outcome"] == outcome and not (outcome == "REFUSED" and row["true_refusal"]):
                print(f"{outcome:16} {row['key']}: {row['trap']}\n{'':17}{_because(row)}")
    true = sum(row["outcome"] == "REFUSED" and row["true_refusal"] for row in rows)
    codes = Counter(
        (row.get("codes") or ["?"])[0] for row in rows if row["outcome"] == "REFUSED" and not row["true_refusal"]
    )
    print(f"\nrefusals that the author calls true: {true}; others by code: {dict(codes.most_common())}")
    unproved = sum(row["outcome"].startswith("KEPT") and not row.get("proved") for row in rows)
    print(f"kept without proof: {unproved} of {sum(row['outcome'].startswith('KEPT') for row in rows)} kept")


if __name__ == "__main__":
    main()
