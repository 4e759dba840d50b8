"""How many of torch's operators export, alone and with every axis open that can be: torch.onnx beside anyshape.

    python benchmarks/operators/audit.py               all, at most 25 minutes on 2 cores; a run that was ended goes on
    python benchmarks/operators/audit.py --fresh       all, though a run was ended
    python benchmarks/operators/audit.py --only cum    operators with this in their name, again, and shown
    python benchmarks/operators/audit.py --again wrong,refused --exporter anyshape

Results are appended to results.jsonl beside this file; the last row of a sample counts. Where every sample has one, they
become docs/reference/operators.md. Needs `expecttest`, as op_db does.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from child import Child
from page import PAGE, write_page

RESULTS = Path(__file__).parent / "results.jsonl"
COMPLETE = Path(__file__).parent / "results-complete.jsonl"
"""A run that is through goes there, so that the next one measures anew."""
EXPORTERS = ("torch.onnx", "anyshape")
SECONDS_PER_SAMPLE = 30.0
_SECONDS_TO_LIST = 300.0


@dataclass(frozen=True)
class Task:
    entry: int
    operator: str
    sample: int
    exporter: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.operator, self.sample, self.exporter

    def row(self, answers: list[dict[str, Any]]) -> dict[str, Any]:
        """What the worker said; where it died, the last stage tells who is to blame."""
        row: dict[str, Any] = {"operator": self.operator, "sample": self.sample, "exporter": self.exporter}
        stage = next((answer["stage"] for answer in reversed(answers) if "stage" in answer), "exporting")
        row |= answers[-1]
        if row["status"] == "slow":
            row["said"] = f"no answer in {SECONDS_PER_SAMPLE:.0f} s, while {stage}"
        if row["status"] == "died":
            row["status"] = "crashed" if stage == "exporting" else "fails"
            row["said"] = f"the process died while {stage}"
        return row


def main() -> None:
    arguments = _arguments()
    if arguments.fresh:
        RESULTS.unlink(missing_ok=True)
    elif (arguments.again or arguments.only) and COMPLETE.exists() and not RESULTS.exists():
        COMPLETE.rename(RESULTS)
    child = Child()
    entries = child.ask("list", _SECONDS_TO_LIST)[:-1]
    child.stop()
    known = load_rows()
    chosen = [task for task in _tasks(entries) if _is_wanted(task, known, arguments)]
    tasks: queue.Queue[Task] = queue.Queue()
    for task in chosen:
        tasks.put(task)
    _run(tasks, len(chosen), arguments)
    rows = load_rows()
    if all(task.key in rows for task in _tasks(entries)):
        print(write_page([rows[task.key] for task in _tasks(entries)], entries, PAGE))
        RESULTS.rename(COMPLETE)


def load_rows() -> dict[tuple[str, int, str], dict[str, Any]]:
    """The last row of every sample and exporter."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return {(row["operator"], row["sample"], row["exporter"]): row for row in rows}


def _tasks(entries: list[dict[str, Any]]) -> list[Task]:
    return [
        Task(entry["entry"], entry["operator"], sample, exporter)
        for entry in entries
        for sample in range(entry["samples"])
        for exporter in EXPORTERS
    ]


def _is_wanted(task: Task, rows: dict[tuple[str, int, str], dict[str, Any]], arguments: argparse.Namespace) -> bool:
    if arguments.exporter not in ("", task.exporter) or task.entry % arguments.every:
        return False
    if arguments.only:
        return arguments.only == task.operator or (arguments.only in task.operator and not arguments.exactly)
    return task.key not in rows or rows[task.key]["status"] in arguments.again.split(",")


def _run(tasks: queue.Queue[Task], total: int, arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    lock = threading.Lock()
    threads = [
        threading.Thread(target=_work, args=(tasks, lock, bool(arguments.only)), daemon=True)
        for _ in range(arguments.workers)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        if sys.stderr.isatty():
            print(f"\r{total - tasks.qsize()} of {total}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    print(f"{total - tasks.qsize()} of {total} in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _work(tasks: queue.Queue[Task], lock: threading.Lock, is_shown: bool) -> None:
    child = Child()
    while True:
        try:
            task = tasks.get_nowait()
        except queue.Empty:
            break
        answers = child.ask(f"{task.entry} {task.sample} {task.exporter}", SECONDS_PER_SAMPLE)
        row = task.row(answers)
        with lock, RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
            if is_shown:
                print(json.dumps(row), flush=True)
    child.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="forget all results")
    parser.add_argument("--only", default="", help="operators with this in their name, again")
    parser.add_argument("--exactly", action="store_true", help="--only is the whole name")
    parser.add_argument("--again", default="", help="statuses whose samples are run again, with commas")
    parser.add_argument("--exporter", default="", choices=("", *EXPORTERS))
    parser.add_argument("--every", type=int, default=1, help="every so many entries of op_db alone")
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
