"""Run models on this machine: a pool of threads, and the process of one model that each of them starts and watches."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, time
from typing import Any, Literal

from anyshape.batch.jobs import GRACE_S, Job, as_arguments, is_python_file, memory_not_measured, share_of_memory
from anyshape.batch.output_folder import EXPORTED, IDENTITY, LOG, MODEL, NOTED, PRINTED, OutputFolder
from anyshape.batch.process_tree import ProcessTable, can_list_processes, identity_of, kill_tree
from anyshape.findings import UsageError
from anyshape.runtime.process import child_search_path, usable_cores

_WAIT_S = 0.2  # a wait that nothing can interrupt
_START = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from anyshape.batch.process_tree import main; main(spec)"
)
_SLICE_S = 0.1
_LATER_S = 1.0  # the child ends by itself at the limit, and writes where it stands; we wait so much longer
_TAIL = 4000


@dataclass(frozen=True)
class Finished:
    """A model whose process has ended. `lost` is why there is none, where its machine was gone at each attempt."""

    job: Job
    folder: Path
    ended: Ended | None
    lost: str = ""


@dataclass
class Running:
    """What a progress line shows of a model that runs."""

    name: str
    began: float = field(default_factory=monotonic)
    stage: str = "starting"
    resident: int = 0

    @property
    def seconds(self) -> float:
        return monotonic() - self.began


ReportRunning = Callable[[int, Running | None], None]
"""Called by a worker with its number and what it is at; None when it is at nothing."""


class LocalPool:
    """`workers` models at a time. Memory limits that nobody gave are a share of the machine's memory."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = max(1, usable_cores() // workers) if workers > 1 else None

    def limited(self, job: Job) -> Job:
        """The job with the memory limit that holds for it here. Raises UsageError if its own cannot be kept."""
        if can_list_processes():
            return job if job.memory_limit is not None else replace(job, memory_limit=share_of_memory(self.workers))
        if job.memory_limit is not None:
            raise UsageError(memory_not_measured())
        return job

    def run(self, jobs: Sequence[Job], output: OutputFolder, report: ReportRunning) -> Generator[Finished]:
        """Each model as it ends. When the iteration is given up, every process is ended before this returns."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        done: queue.SimpleQueue[Finished | BaseException] = queue.SimpleQueue()
        stop, table = threading.Event(), ProcessTable()

        def work(number: int) -> None:
            while not stop.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    folder = output.new_folder(job)
                    ended = run_model(
                        job,
                        folder,
                        Surroundings(threads=self._threads),
                        table=table,
                        stop=stop,
                        report=lambda running: report(number, running),
                    )
                    report(number, None)
                    done.put(Finished(job, folder, ended))
                except BaseException as error:
                    done.put(error)
                    return

        threads = [threading.Thread(target=work, args=(each,)) for each in range(min(self.workers, len(jobs)))]
        try:
            for thread in threads:
                thread.start()
            for _ in jobs:
                finished = _take(done)
                if isinstance(finished, BaseException):
                    raise finished
                yield finished
        finally:
            stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


def _take(done: queue.SimpleQueue[Finished | BaseException]) -> Finished | BaseException:
    while True:
        try:
            return done.get(timeout=_WAIT_S)
        except queue.Empty:
            continue


Ending = Literal["itself", "time", "memory", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the process of a model ended: by itself with `returncode`, or killed for its time, its memory, or because we stop.

    `began` is the time of the clock at which it was started. `where` is the machine, if it is another one.
    """

    how: Ending
    returncode: int
    seconds: float
    began: float
    peak_memory: int | None = None
    where: str = ""


Report = Callable[[Running], None]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Where a model's process runs: its working folder, its threads, and the folder that it removes if its parent dies.

    None means: ours, as many as there are, and the folder of the model.
    """

    cwd: Path | None = None
    threads: int | None = None
    removed: Path | None = None


def run_model(
    job: Job, folder: Path, around: Surroundings, *, table: ProcessTable, stop: threading.Event, report: Report
) -> Ended:
    """Export the model into the folder, which must be new; no process of it is left when this returns.

    The folder then has model.onnx if there is one, what the process wrote to stderr (log.txt), and hidden files for us.
    """
    running, began, wall = Running(job.name), monotonic(), time()
    with (folder / PRINTED).open("wb") as printed, (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(spec_of(job, folder, around))],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=log,
            env=_environment(around.threads),
            cwd=around.cwd,
            start_new_session=True,
        )
    try:
        (folder / IDENTITY).write_text(identity_of(process.pid) or "", encoding="utf-8")
        how, peak = _watch(process, job, running, folder, table, stop, report)
    finally:
        kill_tree(process.pid)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    return Ended(
        how=how,
        returncode=process.returncode,
        seconds=monotonic() - began,
        began=wall,
        peak_memory=peak if peak else None,
    )


def spec_of(job: Job, folder: Path, around: Surroundings) -> dict[str, Any]:
    """The request for the child process; all paths are absolute but that of the source."""
    folder = folder.absolute()
    arguments = ["export", job.source, "-o", _output(job, folder), "--json", f"--time-limit={job.time_limit:.3f}s"]
    return {
        "path": child_search_path(),
        "arguments": [*arguments, *as_arguments(job.options)],
        "folder": str(folder),
        "removed": str(around.removed or folder),
        "noted": str(folder / NOTED),
        "ends_at": time() + job.time_limit + GRACE_S,
        "memory_limit": job.memory_limit,
    }


def _output(job: Job, folder: Path) -> str:
    """A file for a model file of Python; a folder for other sources, which may give several files."""
    return str(folder / MODEL) if is_python_file(job.source) else os.path.join(folder / EXPORTED, "")  # noqa: PTH118


def _environment(threads: int | None) -> dict[str, str]:
    """Ours, with threads for one of several workers, where the user has not chosen their number."""
    own = dict(os.environ)
    if threads is not None:
        own.setdefault("OMP_NUM_THREADS", str(threads))
    return own


def _watch(
    process: subprocess.Popen[bytes],
    job: Job,
    running: Running,
    folder: Path,
    table: ProcessTable,
    stop: threading.Event,
    report: Report,
) -> tuple[Ending, int]:
    """Wait until the process ends, passes a limit, or we are to stop; with the most memory that was seen."""
    peak = 0
    limit = job.time_limit + GRACE_S
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SLICE_S)
            return "itself", peak
        running.resident = table.resident(process.pid)
        peak = max(peak, running.resident)
        if stop.is_set():
            return "stopped", peak
        if job.memory_limit is not None and peak > job.memory_limit:
            return "memory", peak
        if running.seconds > limit + _LATER_S:
            return "time", peak
        running.stage = _last_stage(folder / LOG) or running.stage
        report(running)


def read_tail(path: Path, size: int = _TAIL) -> str:
    """The end of a text file; empty if there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - size))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _last_stage(log: Path) -> str:
    """`comparing 3/18`, the last progress line that the export wrote."""
    lines = [line for line in read_tail(log, 400).splitlines() if line.startswith("anyshape: ")]
    return lines[-1].removeprefix("anyshape: ") if lines else ""
