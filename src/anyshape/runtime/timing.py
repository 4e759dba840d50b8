"""Time and memory of calls of a file, measured in a process of its own: nothing else is in its memory.

python -c "from anyshape.runtime.timing import main; main()"     a pickled request on stdin, one line of JSON on stdout
"""

from __future__ import annotations

import json
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.runtime.child_messages import RuntimeFailed
from anyshape.runtime.dtypes import Array
from anyshape.runtime.process import child_environment, child_search_path, package_parent
from anyshape.runtime.session import Session

_START = "import sys; sys.path[:] = sys.argv[1:]; from anyshape.runtime.timing import main; main()"
_FEWEST_CALLS, _MOST_CALLS = 5, 1000
_MB = 1024 * 1024


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
    command = [sys.executable, "-P", "-c", _START, *child_search_path()]
    child = subprocess.run(
        command, input=pickle.dumps(request), capture_output=True, env=child_environment(), cwd=package_parent()
    )
    lines = child.stdout.decode().strip().splitlines()
    if child.returncode or not lines:
        last = child.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {child.returncode}"]
        raise RuntimeFailed(last[-1])
    return Timing(**json.loads(lines[-1]))


def main() -> None:
    """What the child does."""
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
