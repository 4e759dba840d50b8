"""A worker process that is asked and answers, and is started anew where it dies or hangs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).parent / "worker.py"
_TASKS_PER_PROCESS = 150
"""torch keeps what it has traced: a process that goes on for ever grows for ever."""
_SECONDS_TO_START = 120.0


class Child:
    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None
        self._tasks = 0

    def ask(self, question: str, seconds: float) -> list[dict[str, Any]]:
        """The answer's lines. The last has a `status`: "died" or "slow" where the process gave none."""
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(question + "\n")
        process.stdin.flush()
        self._tasks += 1
        answers: list[dict[str, Any]] = []
        deadline = time.monotonic() + seconds
        while not answers or "status" not in answers[-1]:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                answers.append({"status": "slow", "seconds": seconds})
            else:
                answers.append({"status": "died"} if line is None else json.loads(line))
        if answers[-1]["status"] in ("slow", "died") or self._tasks >= _TASKS_PER_PROCESS:
            self.stop()
        return answers

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process, self._tasks = None, 0

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._lines = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
            if self._lines.get(timeout=_SECONDS_TO_START) is None:
                raise SystemExit("the worker does not start: is expecttest installed?")
        return self._process


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)
