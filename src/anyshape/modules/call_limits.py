"""Limits on calls of the user's code: time, memory, and the signals of the user's program.

Time: a watching thread raises OutOfTime in the limited thread, between two steps of Python code. It never does so while that
thread enters or leaves a `with`, cleans up or imports a module: what is being put back is put back. For two seconds it
waits for a step that is no call of C code, which might just have taken a lock; a loop may have none, so then any step will do.
The whole limit is real time. A part of it can be limited by the CPU time of the thread instead: on a machine that is busy with
other things the same work fits into it, and it takes no more than most of the real time that is left.

Memory: allocations beyond a ceiling fail, instead of the whole process being killed. Which sizes are tried never depends on it.

Signals: a TimeoutError from `signal.alarm` would look like a refusal of the model if it hit the model's forward. It travels as
`HandlerRaised`, which nothing catches, and leaves as itself.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import monotonic
from types import FrameType, TracebackType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]
LEAST_ALLOWANCE = 1 << 30
_SHARE = 4
_CLEANING = frozenset(
    {
        *("__enter__", "__exit__", "__del__", "_exitfunc", "_run_exitfuncs", "rmtree", "cleanup", "_cleanup"),
        *("close", "kill", "discard", "restore", "_bury", "_end", "undo", "put_back", "_leave_part"),
    }
)
"""Functions that change something for a while or put it back: none of them, and nothing that they call, is interrupted."""
_SAFE_STEPS = ("RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
"""The steps at which Python looks for interrupts: the start of a function, the end of a loop's turn."""
_IMPORTING = "<import>"
_POLL_S = 0.002
_PATIENCE_S = 2.0  # for a step between two calls
_STEPS_TO_ARRIVE = 1000
_AGAIN_S = 2.0  # code that catches everything has swallowed it
_MOST_OF_REAL_TIME = 0.8  # that is left, for a part which is limited by CPU time


class HandlerRaised(BaseException):
    """Carries what a handler raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def handlers_go_through() -> Iterator[None]:
    """Within this, an exception that a signal handler raises passes every `except Exception`, and leaves unchanged.

    Python runs handlers in the main thread only; in any other thread this does nothing.
    """
    raised: HandlerRaised | None = None
    changed = _wrap_handlers() if threading.current_thread() is threading.main_thread() else {}
    try:
        yield
    except HandlerRaised as error:
        raised = error
    finally:
        for number, (wrapper, own) in changed.items():
            if signal.getsignal(number) is wrapper:  # else the user's code has set another meanwhile
                signal.signal(number, own)
    if raised is not None:
        raise raised.error


def _wrap_handlers() -> dict[int, tuple[Handler, Handler]]:
    changed: dict[int, tuple[Handler, Handler]] = {}
    for number in signal.valid_signals():
        own = signal.getsignal(number)
        if callable(own) and own is not signal.default_int_handler:
            wrapper = _carrying(own)
            signal.signal(number, wrapper)
            changed[number] = (wrapper, own)
    return changed


def _carrying(own: Handler) -> Handler:
    @functools.wraps(own, updated=())
    def handle(number: int, frame: FrameType | None) -> Any:
        try:
            return own(number, frame)
        except Exception as error:
            carried = HandlerRaised(error)
        raise carried

    return handle


def free_memory() -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def allowance() -> int | None:
    """What one call may take: a quarter of the free memory, and no less than 1 GiB."""
    free = free_memory()
    return None if free is None else max(LEAST_ALLOWANCE, free // _SHARE)


@contextmanager
def memory_ceiling(more: int | None) -> Iterator[None]:
    """Within this, the process can allocate so many bytes more than it has now; None: as many as the system gives.

    A ceiling that is already there and lower stays. Other threads meet the same ceiling meanwhile.
    """
    used = _address_space()
    if more is None or used is None:
        yield
        return
    import resource  # not on every system; where it is missing, so is the address space in /proc

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = used + more if soft == resource.RLIM_INFINITY else min(soft, used + more)
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


class OutOfTime(BaseException):
    """The time is over. Not an Exception: what catches those, ours, torch's or the user's, must not keep it."""


class _TakenBack(BaseException):
    """Stands in the place of an OutOfTime that came too late."""


class TimeLimit:
    """A context manager; while it is entered, OutOfTime is raised in this thread once the time is over."""

    def __init__(self, seconds: float = inf) -> None:
        self.seconds = seconds
        self.stage = ""  # what runs now, for messages
        self._deadlines = [inf]
        self._cpu_deadlines = [inf]
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._thread_id = 0
        self._depth = 0
        self._has_raised = False

    @property
    def left(self) -> float:
        """Seconds that are left, of this part if one is entered."""
        left = self._deadlines[-1] - monotonic()
        end = self._cpu_deadlines[-1]
        return left if end == inf else min(left, end - _cpu_seconds(self._thread_id))

    def check(self) -> None:
        """Raise OutOfTime if the time is over."""
        if self.left <= 0:
            raise OutOfTime

    @contextmanager
    def part(self, share: float, *, of_cpu: bool = False) -> Iterator[float]:
        """Within this, the time is over after a share of what is left; gives the seconds of that share.

        With `of_cpu`, they are seconds of CPU time of the limited thread.
        """
        left = max(0.0, self.left)
        seconds, real, end = share * left, share * left, inf
        if of_cpu and left != inf:
            real = max(share, _MOST_OF_REAL_TIME) * left
            end = _cpu_seconds(self._thread_id) + seconds
        with self._lock:
            self._deadlines.append(min(self._deadlines[-1], monotonic() + real))
            self._cpu_deadlines.append(min(self._cpu_deadlines[-1], end))
        try:
            self.check()
            yield seconds
        finally:
            self._leave_part()

    def _leave_part(self) -> None:
        with self._lock:
            self._deadlines.pop()
            self._cpu_deadlines.pop()
            self._take_back()

    def __enter__(self) -> TimeLimit:
        self._thread_id, self._depth = threading.get_ident(), len(_names(sys._getframe(1)))
        if self.seconds != inf:
            self._deadlines = [monotonic() + self.seconds]
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed.set()
            self._take_back()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self) -> None:
        raised_at = -inf
        while not self._closed.wait(min(max(self.left, _POLL_S), 0.25)):
            with self._lock:
                if self._closed.is_set() or self.left > 0 or monotonic() - raised_at < _AGAIN_S:
                    continue
                frame = sys._current_frames().get(self._thread_id)
                if _may_interrupt(frame, self._depth, at_any_step=self.left < -_PATIENCE_S):
                    _raise_in(self._thread_id, OutOfTime)
                    self._has_raised = True
                    raised_at = monotonic()

    def _take_back(self) -> None:
        """Let an OutOfTime that was raised and has not arrived yet do nothing.

        Another exception takes its place and is caught here. Python 3.11 would go on checking for one that is only
        removed, before each instruction, and without end while a trace function is set.
        """
        if not self._has_raised:
            return
        self._has_raised = False
        try:
            _raise_in(self._thread_id, _TakenBack)
            for _ in range(_STEPS_TO_ARRIVE):
                pass
        except _TakenBack:
            pass


def _cpu_seconds(thread_id: int) -> float:
    """The CPU time of a thread so far; real time where the system does not report it for each thread."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(thread_id))


def _may_interrupt(frame: FrameType | None, depth: int, *, at_any_step: bool) -> bool:
    """Whether no function cleans up or imports, of those that were called since the stack had this depth."""
    if frame is None or not (at_any_step or _is_between_steps(frame)):
        return False
    names = _names(frame)
    return not any(name in _CLEANING or name == _IMPORTING for name in names[: len(names) - depth])


def _names(frame: FrameType | None) -> list[str]:
    """The functions of a stack, the innermost first."""
    names = []
    while frame is not None:
        is_import = frame.f_code.co_filename.startswith("<frozen importlib")
        names.append(_IMPORTING if is_import else frame.f_code.co_name)
        frame = frame.f_back
    return names


def _is_between_steps(frame: FrameType) -> bool:
    """Whether the thread waits at a step where it takes up an interrupt at once, rather than inside a call of C code."""
    if sys.version_info < (3, 11) or frame.f_lasti < 0:
        return True
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(_SAFE_STEPS)


def _raise_in(thread_id: int, error: type[BaseException]) -> None:
    """Have the error raised in that thread at its next step, in place of one that was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(error))
