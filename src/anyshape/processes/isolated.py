"""Run a public function in a process of its own, and hold it to its limits from outside.

The caller's thread forks, then waits: it passes on progress, output, log lines and warnings, and raises the error or returns
the result. When the time is over, or the caller is interrupted, the process and all that it has started are killed.

A process that a signal has ended, or that has stopped to compute without a result (a lock that another thread of the caller
held during the fork), is tried once more in a fresh one: a process may be killed from outside. The same end twice is a fact.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import math
import pickle
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from anyshape.findings import PromiseBroken
from anyshape.processes import can_fork, is_own_process
from anyshape.processes.deaths import Death
from anyshape.processes.endings import process_ended, stopped_from_outside
from anyshape.processes.forked import Channel, Forked, Gone
from anyshape.processes.idleness import Idleness
from anyshape.processes.quiet import quiet_libraries
from anyshape.processes.run_folders import make_folder, use_folder
from anyshape.processes.transport import SharedMemory, SharedTensors, pack, pack_error, tensors_of, unpack, unpack_error

P = ParamSpec("P")
T = TypeVar("T")

_GRACE_S = 2.0  # a process ends itself when its time is over, with what it has found; then it is killed
_SLICE_S = 0.25
_IDLE_S = 20.0  # without processor time, with another try left: what waits for a lock of another thread waits forever
_TRIES = 2


def in_own_process(
    *,
    seconds: float = math.inf,
    prepare: Callable[[Any], Any] = lambda result: result,
    preload: Callable[[], None] = lambda: None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function: it runs in a process forked from the caller's.

    Its keywords `time_limit` (else `seconds`), `progress` (a function or None) and `isolate` are read here. `prepare` makes of
    the result what is sent back; `preload` loads before the fork what would be loaded again in each child. A module on an
    accelerator stays in the caller's process: a forked one cannot use its memory.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            given: dict[str, Any] = dict(kwargs)
            if is_own_process():
                return function(*args, **kwargs)
            if given.get("isolate") is False or not can_fork():
                return function(*args, **kwargs)
            tensors = tensors_of([*args, *given.values()])
            if any(tensor.device.type not in ("cpu", "meta") for tensor in tensors):
                return function(*args, **kwargs)
            preload()
            limit = given.get("time_limit")
            limit = limit if isinstance(limit, (int, float)) and limit > 0 else seconds
            return call_in_own_process(
                lambda tell: function(
                    *args, **{**given, "progress": tell} if callable(given.get("progress")) else given
                ),  # type: ignore[arg-type]
                seconds=limit,
                progress=given.get("progress"),
                shared=SharedTensors(tensors, SharedMemory()),
                prepare=prepare,
            )

        return run

    return decorate


def call_in_own_process(
    work: Callable[[Callable[[str, int, int], None]], T],
    *,
    seconds: float = math.inf,
    progress: Any = None,
    shared: SharedTensors | None = None,
    prepare: Callable[[Any], Any] = lambda result: result,
) -> T:
    """The result of `work(tell)`, which runs in a forked process. Raises what it raises, or PromiseBroken where it ends."""
    shared = shared or SharedTensors((), SharedMemory())
    deadline = time.monotonic() + seconds
    death = None
    for tries_left in reversed(range(_TRIES)):
        run = _Run(work, shared, prepare, progress, deadline, seconds)
        try:
            return run.result(may_stop=tries_left > 0)
        except _Ended as ended:
            same = death is not None and str(death) == str(ended.death)
            death = ended.death
            if not tries_left or not death.signal or (same and time.monotonic() >= deadline):
                raise PromiseBroken(process_ended(death, run.stage)) from None
        finally:
            run.close()
    raise AssertionError("unreachable: the last try returns or raises")


class _Ended(Exception):
    """The process ended without a result."""

    def __init__(self, death: Death) -> None:
        super().__init__(str(death))
        self.death = death


class _Run:
    """One process of `call_in_own_process`, seen from the caller."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        shared: SharedTensors,
        prepare: Callable[[Any], Any],
        progress: Any,
        deadline: float,
        seconds: float,
    ) -> None:
        self.stage = ""
        self._shared, self._progress = shared, progress if callable(progress) else None
        self._deadline, self._seconds = deadline, seconds
        self._folder = make_folder()
        self._forked = Forked(functools.partial(_serve, work, shared, prepare, self._folder))

    def result(self, *, may_stop: bool) -> Any:
        """What the function returns. Raises what it raises, `_Ended`, or PromiseBroken when the time is over."""
        channel, idle = self._forked.channel, Idleness(self._forked.pid)
        while True:
            left = self._deadline + _GRACE_S - time.monotonic()
            if channel.is_ready(min(left, _SLICE_S)):
                try:
                    kind, *facts = channel.receive()
                except Gone:
                    raise _Ended(self._forked.death()) from None
                if kind == "result":
                    return unpack(facts[0], self._shared)
                if kind == "error":
                    raise unpack_error(facts[0], self._shared)
                self._pass_on(kind, *facts)
                idle.reset()
            elif not self._forked.is_alive() and not channel.is_ready(0.0):
                raise _Ended(self._forked.death())
            elif left <= 0:
                self._forked.describe_where()
                self._forked.kill()
                raise PromiseBroken(stopped_from_outside(self._seconds, self.stage, self._forked.death()))
            elif may_stop and idle.seconds() > _IDLE_S:
                self._forked.kill()
                raise _Ended(Death(-9, "SIGKILL"))

    def _pass_on(self, kind: str, *facts: Any) -> None:
        if kind == "progress":
            self.stage = f"{facts[0]}, {facts[1]} of {facts[2]}" if facts[2] else facts[0]
            if self._progress is not None:
                self._progress(*facts)
        elif kind == "output":
            stream = getattr(sys, facts[0])
            stream.write(facts[1])
            stream.flush()
        elif kind == "warning":
            message, category, file, line = facts
            warnings.warn_explicit(message, category, file, line)
        elif kind == "log":
            record = logging.makeLogRecord(facts[0])
            logging.getLogger(record.name).handle(record)

    def close(self) -> None:
        """End the process, which may put away what it has begun to write, and remove its temporary files."""
        self._forked.stop()
        self._forked.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _serve(
    work: Callable[[Any], Any], shared: SharedTensors, prepare: Callable[[Any], Any], folder: Path, channel: Channel
) -> None:
    """In the child: run the work, and send what comes of it."""

    def tell(stage: str, done: int, total: int) -> None:
        channel.send(("progress", stage, done, total))

    use_folder(folder)
    _send_output(channel)
    _send_warnings(channel)
    _send_log(channel)
    try:
        with quiet_libraries():
            content = pack(prepare(work(tell)), shared)
    except BaseException as error:
        if isinstance(error, PromiseBroken):
            error.attempts = tuple(map(prepare, error.attempts))
        channel.send(("error", pack_error(error, shared)))
    else:
        channel.send(("result", content))


class _SentStream:
    """A text stream of which each write goes to the caller's stream of this name."""

    encoding, errors = "utf-8", "backslashreplace"

    def __init__(self, channel: Channel, name: str) -> None:
        self._channel, self._name = channel, name

    def write(self, text: str) -> int:
        if text:
            self._channel.send(("output", self._name, str(text)))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


def _send_output(channel: Channel) -> None:
    """Streams of Python without a handle of the system (of a notebook, of a test) are the caller's: it writes to them."""
    for name in ("stdout", "stderr"):
        if not _has_handle(getattr(sys, name)):
            setattr(sys, name, _SentStream(channel, name))


def _has_handle(stream: Any) -> bool:
    if not isinstance(stream, io.TextIOWrapper):
        return False
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


def _send_warnings(channel: Channel) -> None:
    def show(message: Any) -> None:
        with contextlib.suppress(
            Gone, pickle.PicklingError, TypeError, AttributeError
        ):  # a warning that cannot be sent
            channel.send(("warning", message.message, message.category, message.filename, message.lineno))

    warnings.showwarning = warnings._showwarning_orig  # type: ignore[attr-defined]
    warnings._showwarnmsg_impl = show  # type: ignore[attr-defined]


def _send_log(channel: Channel) -> None:
    def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        with contextlib.suppress(
            Gone
        ):  # a worker has no channel to the caller: what calls at tried sizes log is dropped
            channel.send(("log", {**_plain(record), "msg": text, "args": (), "exc_info": None}))

    logging.Logger.callHandlers = handle  # type: ignore[method-assign, assignment]


def _plain(record: logging.LogRecord) -> Mapping[str, Any]:
    plain = (str, int, float, bool, type(None))
    return {name: value for name, value in vars(record).items() if isinstance(value, plain)}
