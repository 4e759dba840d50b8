"""How many of torch's operators export, alone and with every axis open that can be: torch.onnx beside anyshape.

    python benchmarks/operators/audit.py             all of op_db, at most 25 minutes on 2 cores; goes on where it ended
    python benchmarks/operators/audit.py --fresh     from the beginning
    python benchmarks/operators/audit.py --only cum  operators whose name has this in it; writes no page

Writes results.jsonl beside this file and docs/reference/operators.md. Needs `expecttest`, as op_db does.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
PAGE = HERE.parent.parent / "docs" / "reference" / "operators.md"
EXPORTERS = ("torch.onnx", "anyshape")
SECONDS_PER_OPERATOR = 40.0
WORKERS = 2


class Child:
    """A worker process. `ask` gives its answer lines; None in their place where it crashed or ran out of time."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, number: int, exporter: str, seconds: float) -> list[dict[str, Any] | None]:
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(f"{number} {exporter}\n")
        process.stdin.flush()
        answers: list[dict[str, Any] | None] = []
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                answers.append(None)
                self.stop()
                return answers
            answer = json.loads(line)
            if "done" in answer:
                return answers
            answers.append(answer)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._lines = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
            )
            threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
            if self._lines.get() is None:
                raise SystemExit("the worker does not start: is expecttest installed?")
        return self._process


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def rows_of(answers: list[dict[str, Any] | None], exporter: str) -> list[dict[str, Any]]:
    """A sample that was begun and not answered hung or crashed."""
    rows: list[dict[str, Any]] = []
    begun: dict[str, Any] | None = None
    for answer in answers:
        if answer is None:
            if begun is not None:
                rows.append({**begun, "exporter": exporter, "status": "slow", "said": "hung or crashed", "sizes": 0})
        elif "begins" in answer:
            begun = {"operator": answer["begins"], "sample": answer["sample"]}
        else:
            rows.append(answer)
            begun = None
    return rows


def main() -> None:
    arguments = _arguments()
    if arguments.fresh:
        RESULTS.unlink(missing_ok=True)
    names = _names()
    finished = {tuple(row["task"]) for row in _load()}
    tasks: queue.Queue[tuple[int, str]] = queue.Queue()
    for number, name in enumerate(names):
        for exporter in EXPORTERS:
            if (number, exporter) not in finished and arguments.only in name:
                tasks.put((number, exporter))
    total = tasks.qsize()
    deadline = time.monotonic() + 60 * arguments.minutes
    lock = threading.Lock()
    threads = [threading.Thread(target=_work, args=(tasks, deadline, lock, arguments.only)) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        if sys.stderr.isatty():
            print(f"\r{total - tasks.qsize()} of {total}", end="", file=sys.stderr)
    if not arguments.only:
        from page import write_page

        print(write_page(_load(), names, tasks.qsize(), PAGE))


def _work(tasks: queue.Queue[tuple[int, str]], deadline: float, lock: threading.Lock, only: str) -> None:
    child = Child()
    while time.monotonic() < deadline:
        try:
            number, exporter = tasks.get_nowait()
        except queue.Empty:
            break
        rows = rows_of(child.ask(number, exporter, SECONDS_PER_OPERATOR), exporter)
        with lock:
            if only:
                print("\n".join(json.dumps(row) for row in rows))
                continue
            with RESULTS.open("a") as file:
                file.write(json.dumps({"task": [number, exporter], "rows": rows}) + "\n")
    child.stop()


def _names() -> list[str]:
    script = (
        "from torch.testing._internal.common_methods_invocations import op_db;"
        "print('\\n'.join(e.name + ('.' + e.variant_test_name if e.variant_test_name else '') for e in op_db))"
    )
    listed = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    return listed.stdout.split("\n")[:-1]


def _load() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--minutes", type=float, default=24.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
