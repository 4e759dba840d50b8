"""Progress of a batch on stderr: a line for each worker on a terminal; in a pipe one for each model, and one now and then."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

from anyshape.batch.model_process import Running
from anyshape.batch.rows import Row
from anyshape.report.amounts import format_bytes

_EVERY_SECONDS = 30.0


class BatchProgress:
    """A watcher of a batch, and a context manager: what it draws, it takes away."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._lock = threading.Lock()
        self._workers: dict[int, Running] = {}
        self._total = self._done = 0
        self._said_at = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """Show how much there is to do."""
        self._total, self._done = total, done
        if done:
            self._say(f"{done} of {total} models are done and unchanged")

    def work(self, worker: int, running: Running | None) -> None:
        """Show what a worker is at."""
        with self._lock:
            if running is None:
                self._workers.pop(worker, None)
            else:
                self._workers[worker] = running
            if self._live is not None:
                self._live.update(self._lines())
            elif self._workers and time.monotonic() - self._said_at > _EVERY_SECONDS:
                self._say("; ".join(line.strip() for line in self._lines().splitlines()))

    def finish(self, row: Row) -> None:
        """A line for a model that is done."""
        self._done += 1
        finding = str((row.finding or {}).get("text", "")).partition("\n")[0]
        self._say(f"[{self._done}/{self._total}] {row.outcome}: {row.name}, in {row.seconds:.1f} s  {finding}".rstrip())

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        if self._live is not None:
            self._live.console.print(text, highlight=False, markup=False)
        else:
            sys.stderr.write(f"anyshape: {text}\n")
            sys.stderr.flush()
            self._said_at = time.monotonic()

    def _lines(self) -> str:
        lines = [f"{self._done} of {self._total} models"]
        for _worker, running in sorted(self._workers.items()):
            memory = f"  {format_bytes(running.resident)}" if running.resident else ""
            lines.append(f"  {running.name}  {running.seconds:.0f} s  {running.stage}{memory}")
        return "\n".join(lines)

    def __enter__(self) -> BatchProgress:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
