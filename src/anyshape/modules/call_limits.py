"""Limits on calls of the user's code: time, and memory.

Time: in a process of our own an alarm raises OutOfTime in the main thread, but not while that thread enters or leaves a
`with`, cleans up or imports a module: what is being put back is put back. Code that catches everything gets it again. In the
caller's process (`isolate=False`) there is no alarm: the time is looked at between the steps of the export. The process as a
whole is limited from outside (processes/isolated.py); this is how an export ends with what it has found until then.
The whole limit is real time. A part of it can be limited by the CPU time of the process instead: on a machine that is busy with
other things the same work fits into it, and it takes no more than most of the real time that is left.

Memory: allocations beyond a ceiling fail, instead of the whole process being killed. Which sizes are tried never depends on it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from types import FrameType, TracebackType

import psutil

from anyshape.processes import is_own_process

LEAST_ALLOWANCE = 1 << 30
_SHARE = 4
_CLEANING = frozenset(
    {
        *("__enter__", "__exit__", "__del__", "_exitfunc", "_run_exitfuncs", "rmtree", "cleanup", "_cleanup"),
        *("close", "kill", "discard", "restore", "_bury", "_end", "undo", "put_back", "_leave_part"),
    }
)
"""Functions that change something for a while or put it back: none of them, and nothing that they call, is interrupted."""
_IMPORTS = "<frozen importlib"
_POLL_S = 0.005  # while the thread is where it must not be interrupted
_LEAST_S = 0.001  # 0 would switch the alarm off
_AGAIN_S = 2.0  # code that catches everything has swallowed it
_MOST_OF_REAL_TIME = 0.8  # that is left, for a part which is limited by CPU time


def free_memory() -> int:
    """Bytes that can be allocated without swapping."""
    return int(psutil.virtual_memory().available)


def allowance() -> int:
    """What one call may take: a quarter of the free memory, and no less than 1 GiB."""
    return max(LEAST_ALLOWANCE, free_memory() // _SHARE)


@contextmanager
def memory_ceiling(more: int) -> Iterator[None]:
    """Within this, the process can allocate so many bytes more than it has now. A ceiling that is already lower stays."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = psutil.Process().memory_info().vms
    ceiling = used + more if soft == resource.RLIM_INFINITY else min(soft, used + more)
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class OutOfTime(BaseException):
    """The time is over. Not an Exception: what catches those, ours, torch's or the user's, must not keep it."""


class TimeLimit:
    """A context manager; while it is entered, OutOfTime is raised once the time is over: by an alarm, or by `check`."""

    def __init__(self, seconds: float = inf) -> None:
        self.seconds = seconds
        self.stage = ""  # what runs now, for messages
        self._deadlines = [inf]
        self._cpu_deadlines = [inf]
        self._outer: tuple[object, float] | None = None

    @property
    def left(self) -> float:
        """Seconds that are left, of this part if one is entered."""
        left = self._deadlines[-1] - monotonic()
        end = self._cpu_deadlines[-1]
        return left if end == inf else min(left, end - time.process_time())

    def check(self) -> None:
        """Raise OutOfTime if the time is over."""
        if self.left <= 0:
            raise OutOfTime

    @contextmanager
    def part(self, share: float, *, of_cpu: bool = False) -> Iterator[float]:
        """Within this, the time is over after a share of what is left; gives the seconds of that share.

        With `of_cpu`, they are seconds of CPU time.
        """
        left = max(0.0, self.left)
        seconds, real, end = share * left, share * left, inf
        if of_cpu and left != inf:
            real = max(share, _MOST_OF_REAL_TIME) * left
            end = time.process_time() + seconds
        self._deadlines.append(min(self._deadlines[-1], monotonic() + real))
        self._cpu_deadlines.append(min(self._cpu_deadlines[-1], end))
        try:
            self._set_alarm()
            self.check()
            yield seconds
        finally:
            self._leave_part()

    def _leave_part(self) -> None:
        self._deadlines.pop()
        self._cpu_deadlines.pop()
        self._set_alarm()

    def __enter__(self) -> TimeLimit:
        if self.seconds != inf:
            self._deadlines = [monotonic() + self.seconds]
        if is_own_process() and threading.current_thread() is threading.main_thread():
            self._outer = signal.signal(signal.SIGALRM, self._on_alarm), signal.getitimer(signal.ITIMER_REAL)[0]
            signal.siginterrupt(signal.SIGALRM, False)
            self._set_alarm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._outer is not None:
            handler, left = self._outer
            self._outer = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, handler)  # type: ignore[arg-type]
            signal.setitimer(signal.ITIMER_REAL, left)

    def _set_alarm(self, seconds: float | None = None) -> None:
        if self._outer is not None:
            wait = self.left if seconds is None else seconds
            signal.setitimer(signal.ITIMER_REAL, 0.0 if wait == inf else max(_LEAST_S, wait))

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self.left > 0:  # of the CPU time, a part that waited has some left
            self._set_alarm()
        elif _is_putting_back(frame):
            self._set_alarm(_POLL_S)
        else:
            self._set_alarm(_AGAIN_S)
            raise OutOfTime


def _is_putting_back(frame: FrameType | None) -> bool:
    """Whether a function on the stack cleans up or imports."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CLEANING or code.co_filename.startswith(_IMPORTS):
            return True
        if (
            frame.f_globals.get("__name__") == "anyshape.processes.isolated"
        ):  # the callers of the export are outside of it
            return False
        frame = frame.f_back
    return False
