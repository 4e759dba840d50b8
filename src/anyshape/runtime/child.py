"""What child processes do: load a model and run it when a request comes, time its calls, or run onnxruntime's own
optimizer.

It may die at any moment; that is what it is for. It ends at once when its parent does, even in the middle of a run.

python -c "from anyshape.runtime.child import time_here; time_here()"     a pickled request on stdin, one line of JSON on stdout

python -c "from anyshape.runtime.child import optimize_here; optimize_here()" ... SOURCE TARGET
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from anyshape.runtime.child_messages import (
    Array,
    Ask,
    Message,
    RuntimeFailed,
    RuntimeRejected,
    read_message,
    remote_operator,
    write_message,
)
from anyshape.runtime.process import child_environment, child_search_path, package_parent
from anyshape.runtime.runtimes import AnySession, runtime_called
from anyshape.runtime.session import Session, write_optimized

_START_TIMING = "import sys; sys.path[:] = sys.argv[1:]; from anyshape.runtime.child import time_here; time_here()"
_FEWEST_CALLS, _MOST_CALLS = 5, 1000
_MB = 1024 * 1024
_START_OPTIMIZER = (
    "import sys; sys.path[:] = sys.argv[3:]; from anyshape.runtime.child import optimize_here; optimize_here()"
)
_SECONDS = 300.0
_REJECTED = 3


def main() -> None:
    """Handle messages until the parent closes our stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    replies = _take_over_stdout()
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True)
    reader.start()

    def ask(message: Message) -> Message:
        write_message(replies, message)
        return requests.get()

    session = _load(requests.get(), replies, ask)
    while session is not None:
        write_message(replies, _reply(session, requests.get()))


def _take_over_stdout() -> BinaryIO:
    """Our own way to the parent; whatever a library prints goes to stderr and cannot spoil a message."""
    private = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(private, "wb")


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[Message]) -> None:
    # A thread of its own: the main one may be deep inside a run when the parent goes.
    while (message := read_message(stream)) is not None:
        requests.put(message)
    os._exit(0)


def _load(message: Message, replies: BinaryIO, ask: Ask) -> AnySession | None:
    limit_memory(message.facts["memory_limit"])
    try:
        session = runtime_called(message.facts["runtime"]).open(
            message.facts["path"],
            {name: remote_operator(name, ask) for name in message.facts["operators"]},
            threads=message.facts["threads"],
            optimize=message.facts["optimize"],
            providers=message.facts["providers"],
        )
    except RuntimeRejected as error:
        write_message(replies, Message("rejected", {"message": error.message, "unsupported": error.unsupported}))
        return None
    facts: Mapping[str, Any] = {
        "inputs": [asdict(info) for info in session.inputs],
        "outputs": [asdict(info) for info in session.outputs],
    }
    write_message(replies, Message("loaded", facts))
    return session


def _reply(session: AnySession, message: Message) -> Message:
    try:
        outputs = session.run(message.arrays)
    except RuntimeFailed as error:
        return Message("failed", {"message": error.message, "memory": error.memory})
    # Positions, not names: a file may name two outputs alike, and the order is what counts.
    return Message("done", {}, {str(position): array for position, array in enumerate(outputs)})


def limit_memory(limit: int | None) -> None:
    """Cap the address space of this process, where the system can; allocations beyond it then fail cleanly."""
    if limit is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    capped = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (capped, hard))


@dataclass(frozen=True, kw_only=True)
class TimingRequest:
    """Which file to call, with what, for how long, and on what."""

    path: str
    feeds: Mapping[str, Array]
    providers: tuple[str, ...]
    threads: int = 1
    seconds: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Milliseconds of a call (the least and the median of `calls`) and of loading; MB of the process at its peak.

    `load_mb` is the memory after loading, before the first call.
    """

    ms: float
    median_ms: float
    calls: int
    load_ms: float
    load_mb: float
    peak_mb: float


def time_calls(request: TimingRequest) -> Timing:
    """Measure in a new process. Raises RuntimeFailed where the file does not answer there."""
    command = [sys.executable, "-P", "-c", _START_TIMING, *child_search_path()]
    child = subprocess.run(
        command, input=pickle.dumps(request), capture_output=True, env=child_environment(), cwd=package_parent()
    )
    lines = child.stdout.decode().strip().splitlines()
    if child.returncode or not lines:
        last = child.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {child.returncode}"]
        raise RuntimeFailed(last[-1])
    return Timing(**json.loads(lines[-1]))


def time_here() -> None:
    """Run in the child: read a TimingRequest from stdin, print a Timing as JSON."""
    request: TimingRequest = pickle.loads(sys.stdin.buffer.read())
    began = time.perf_counter()
    session = Session(request.path, threads=request.threads, providers=request.providers, spinning=False)
    load_ms, load_mb = 1000 * (time.perf_counter() - began), _resident_mb()
    times = time_session(session, request.feeds, request.seconds)
    sys.stdout.write(
        json.dumps(
            {
                "ms": 1000 * min(times),
                "median_ms": 1000 * statistics.median(times),
                "calls": len(times),
                "load_ms": load_ms,
                "load_mb": load_mb,
                "peak_mb": _peak_mb(),
            }
        )
        + "\n"
    )


def time_session(session: Session, feeds: Mapping[str, Array], seconds: float) -> list[float]:
    """Seconds of each call, after two that are not counted."""
    for _ in range(2):
        session.run(feeds)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _MOST_CALLS and (len(times) < _FEWEST_CALLS or time.perf_counter() < end):
        began = time.perf_counter()
        session.run(feeds)
        times.append(time.perf_counter() - began)
    return times


def _peak_mb() -> float:
    """The most memory that this process had. Not by getrusage where /proc has it: that counts the parent's, too."""
    own = _from_status("VmHWM:")
    if own is not None:
        return own
    if sys.platform == "win32":
        return _peak_mb_on_windows()
    import resource

    most: float = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / _MB if sys.platform == "darwin" else most / 1024


def _peak_mb_on_windows() -> float:
    """PeakWorkingSetSize of PROCESS_MEMORY_COUNTERS: after two numbers of 4 bytes, the first of its sizes."""
    import ctypes

    class Counters(ctypes.Structure):
        _fields_ = [("cb", ctypes.c_uint32), ("faults", ctypes.c_uint32), ("sizes", ctypes.c_size_t * 8)]

    counters = Counters(cb=ctypes.sizeof(Counters))
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo(
        ctypes.c_void_p(kernel.GetCurrentProcess()), ctypes.byref(counters), ctypes.sizeof(Counters)
    )
    return float(counters.sizes[0]) / _MB


def _resident_mb() -> float:
    """The memory of this process now; its peak where the system does not show the present."""
    now = _from_status("VmRSS:")
    return now if now is not None else _peak_mb()


def _from_status(name: str) -> float | None:
    """A figure of /proc/self/status in MB, None where there is no such file."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def as_plain_timing(timing: Timing) -> dict[str, Any]:
    """For JSON, with as many digits as mean something."""
    return {name: round(value, 4) for name, value in vars(timing).items()}


def optimize_file(source: Path, target: Path) -> None:
    """Write the optimized file. Raises RuntimeRejected where onnxruntime does not load the file, crashes or hangs.

    Weights that lie beside `source` stay there: put `target` into the same folder.
    """
    command = [
        sys.executable,
        "-P",
        "-c",
        _START_OPTIMIZER,
        str(source.absolute()),
        str(target.absolute()),
        *child_search_path(),
    ]
    try:
        child = subprocess.run(
            command, capture_output=True, env=child_environment(), cwd=package_parent(), timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeRejected(f"it took longer than {_SECONDS:g} s") from error
    if child.returncode == 0 and target.exists():
        return
    lines = child.stderr.decode(errors="replace").strip().splitlines()
    if child.returncode == _REJECTED and lines:
        raise RuntimeRejected(lines[-1])
    raise RuntimeRejected(f"its process ended with status {child.returncode}")


def optimize_here() -> None:
    """Run by the child process."""
    try:
        write_optimized(sys.argv[1], sys.argv[2])
    except RuntimeRejected as error:
        sys.stderr.write(" ".join(error.message.split()) + "\n")
        sys.exit(_REJECTED)


if __name__ == "__main__":
    main()
