"""Start the process of one model, watch its time and the memory of its tree, and say how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Any, Literal

from anyshape.batch.export_options import as_arguments
from anyshape.batch.jobs import Job, is_python_file
from anyshape.batch.model_limits import GRACE_S
from anyshape.batch.process_tree import ProcessTable, identity_of, kill_tree
from anyshape.runtime.process import child_search_path

_START = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from anyshape.batch.model_child import main; main(spec)"
)
_SLICE_S = 0.1
_LATER_S = 1.0  # the child ends by itself at the limit, and writes where it stands; we wait so much longer
_TAIL = 4000
EXPORTED = "exported"
MODEL, PRINTED, LOG, NOTED, IDENTITY = "model.onnx", ".printed.json", "log.txt", ".files.txt", ".process"

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
    """What the child is told; all paths are absolute but that of the source."""
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
