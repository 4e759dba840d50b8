"""Call a function in a forked process, which may crash, hang or take too much memory.

A worker is forked at the first call, and serves further ones until it dies. A call in which it died is made once more in a
fresh worker, with nothing else before it: an earlier call may have damaged its memory, or it was killed from outside. The
same end twice is a fact about this call.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from anyshape.processes import is_own_process
from anyshape.processes.deaths import Death
from anyshape.processes.forked import Channel, Forked, Gone
from anyshape.processes.idleness import Idleness
from anyshape.processes.transport import SharedTensors, guard_tensors, pack_error, unpack_error

_SLICE_S = 0.25
_LEAST_LIMIT_S = 10.0
_TIMES_LONGER = 100
_MOST_WALL = 10  # real time for each second of processor time: a machine may be busy
_MOST_HALVINGS = 3
_IDLE_S = 10.0  # a call that computes nothing for so long waits for something that an export has not got
_TRIES = 2
_NOTHING_SHARED = SharedTensors(())


class WorkerDied(Exception):
    """The process of a call ended, or was ended since the call took too long; `death` has the line where it was then."""

    def __init__(self, death: Death, why: str) -> None:
        super().__init__(why)
        self.death = death


class TookTooLong(WorkerDied):
    """The call was ended; another try would take as long."""


def survived(calls: Sequence[Callable[[], object]], *, seconds: float) -> list[bool]:
    """Which of these calls end, with an answer or an error, rather than end the process or take longer than allowed.

    All of them are made in one forked process; in one each, where that has died.
    """
    if not calls or not is_own_process():
        return [True] * len(calls)

    def run(number: int | None) -> bool:
        for call in calls if number is None else [calls[number]]:
            with contextlib.suppress(Exception):
                call()
        return True

    def lives(number: int | None) -> bool:
        worker = Worker(run, seconds=seconds)
        try:
            return bool(worker.call(number))
        except WorkerDied:
            return False
        finally:
            worker.close()

    return [True] * len(calls) if lives(None) else [lives(number) for number in range(len(calls))]


class _Collected(io.TextIOBase):
    """A stream whose text travels with the reply of a call."""

    def __init__(self, name: str, printed: list[tuple[str, str]]) -> None:
        self._name, self._printed = name, printed

    def write(self, text: str) -> int:
        self._printed.append((self._name, text))
        return len(text)


class Worker:
    """Calls `function(request)` in another process.

    A call takes at most `seconds` of processor time, and at most 100 times as long as the longest call before it, or 10 s where
    that is more; it may wait for 10 s without computing. After one that took too long, the next ones get half as much.

    The tensors of a request end at a page which nobody may touch, unless the first call dies of that, and not without: some
    kernels read a little further than they need, and do nothing with it.
    """

    def __init__(self, function: Callable[[Any], Any], *, seconds: float) -> None:
        self._function = function
        self._seconds = seconds
        self._forked: Forked | None = None
        self._guards, self._has_answered = True, False
        self._begun: Any = None  # a request that was sent, and not answered yet
        self._longest = 0.0  # seconds of the longest call that ended by itself
        self._ended = 0  # calls that took too long

    def begin(self, request: Any) -> None:
        """Send a request, so that its call goes on meanwhile; the next `call` must be for it."""
        with contextlib.suppress(Exception):  # the call will tell
            self._send(request)
            self._begun = request

    def call(self, request: Any) -> Any:
        """What the function returns. Raises what it raises, or WorkerDied."""
        died: WorkerDied | None = None
        for _ in range(_TRIES):
            try:
                answer = self._call(request)
                self._has_answered = True
                return answer
            except WorkerDied as error:
                self.close()
                self._guards = self._guards and self._has_answered
                if isinstance(error, TookTooLong):
                    raise
                if died is not None and str(died) == str(error):
                    raise
                died = error
            except BaseException as error:
                if not isinstance(error, Exception):  # the time is over, or Ctrl-C: the worker is still at this call
                    self.close()
                raise
        raise died or AssertionError("unreachable: each try returns or raises")

    def _call(self, request: Any) -> Any:
        is_begun, self._begun = self._begun is request, None
        try:
            forked = self._forked if is_begun and self._forked is not None else self._send(request)
        except WorkerDied:
            raise
        except Exception:  # it cannot be pickled: a fork has it from our memory
            return self._call_alone(request)
        return self._reply(forked)

    def _send(self, request: Any) -> Forked:
        """Send a request to the worker, which is forked if there is none. Raises WorkerDied."""
        forked = self._forked = self._forked or Forked(self._serve, quiet=True)
        try:
            forked.channel.send(request)
        except Gone:
            raise WorkerDied(forked.death(), str(forked.death())) from None
        return forked

    def _call_alone(self, request: Any) -> Any:
        forked = Forked(lambda channel: self._answer(channel, request), quiet=True)
        try:
            return self._reply(forked)
        finally:
            forked.close()

    def _reply(self, forked: Forked) -> Any:
        began = time.monotonic()
        if not forked.channel.is_ready(_SLICE_S):
            self._wait(forked, began)
        self._longest = max(self._longest, time.monotonic() - began)
        try:
            is_error, value, printed = forked.channel.receive()
        except Gone:
            raise WorkerDied(forked.death(), str(forked.death())) from None
        for name, text in printed:
            getattr(sys, name).write(text)
        if is_error:
            raise unpack_error(value, _NOTHING_SHARED)
        return value

    def _wait(self, forked: Forked, began: float) -> None:
        """Wait for the reply of a call, or its end. Raises WorkerDied where it takes too long."""
        idle = Idleness(forked.pid)
        share = 0.5**self._ended
        most = min(self._seconds, max(_LEAST_LIMIT_S, _TIMES_LONGER * self._longest) * share)
        while forked.is_alive() and not forked.channel.is_ready(_SLICE_S):
            waited = idle.seconds() > _IDLE_S * share
            if waited or idle.used > most or time.monotonic() - began > _MOST_WALL * most:
                forked.describe_where()
                forked.kill()
                self._ended = min(self._ended + 1, _MOST_HALVINGS)
                why = f"computed nothing for {_IDLE_S * share:g} s" if waited else f"took longer than {most:g} s"
                raise TookTooLong(forked.death(), f"the call was ended: it {why}")

    def _serve(self, channel: Channel) -> None:
        if self._guards:
            guard_tensors()
        while True:
            self._answer(channel, channel.receive())

    def _answer(self, channel: Channel, request: Any) -> None:
        printed: list[tuple[str, str]] = []
        sys.stdout, sys.stderr = _Collected("stdout", printed), _Collected("stderr", printed)  # type: ignore[assignment]
        try:
            message = False, self._function(request), printed
        except BaseException as error:
            message = True, pack_error(error, _NOTHING_SHARED), printed
        try:
            channel.send(message)
        except (pickle.PicklingError, TypeError, AttributeError) as error:  # an answer that cannot be sent
            channel.send((True, pack_error(error, _NOTHING_SHARED), printed))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, if there is one."""
        self._begun = None
        if self._forked is not None:
            self._forked.close()
            self._forked = None
