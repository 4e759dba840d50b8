"""Fork a process, exchange messages with it, and kill it with all that it has started.

A child leads a process group of its own, so that everything it starts can be killed with it, and it is killed by the system
when the thread that forked it ends. Each end of a pipe is held by one process only: a child closes those of its siblings, or
the end of a sibling would go unnoticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

from anyshape.processes import become_own_process
from anyshape.processes.deaths import Death, read_death
from anyshape.processes.transport import pack_parts

_FORKING = threading.Lock()
_OURS: set[Connection] = set()  # the ends that this process holds; a child closes them
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_STOPS_WITHIN_S = 1.0
_DESCRIBES_WITHIN_S = 2.0  # a busy machine; a process that computes writes at once
_POLL_S = 0.01
_OBJECTS = 20_000  # between two collections: few enough that a tensor in a circle of references does not stay for long


class Stopped(BaseException):
    """The caller wants this process to end."""


class Gone(Exception):
    """The other process has ended, or closed its end of the pipe."""


class Channel:
    """Messages from and to another process: any objects that can be pickled."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, message: Any) -> None:
        """Raises Gone where nobody reads, and what pickle raises for a message that cannot be sent."""
        content, arrays = pack_parts(message)
        try:
            self._connection.send_bytes(len(arrays).to_bytes(4, "little") + content)
            for array in arrays:
                self._connection.send_bytes(array)
        except (OSError, ValueError) as error:
            raise Gone from error

    def receive(self) -> Any:
        """The next message, once there is one. Raises Gone."""
        try:
            content = self._connection.recv_bytes()
            arrays = [bytearray(self._connection.recv_bytes()) for _ in range(int.from_bytes(content[:4], "little"))]
        except (EOFError, OSError) as error:
            raise Gone from error
        return pickle.loads(memoryview(content)[4:], buffers=arrays)

    def is_ready(self, seconds: float) -> bool:
        """Whether a message, or the end of the other process, comes within this time."""
        return bool(wait([self._connection], max(0.0, seconds)))

    def close(self) -> None:
        """No message comes or goes from now on."""
        _OURS.discard(self._connection)
        self._connection.close()


class Forked:
    """A forked process that runs `work(channel)`. It ends with `work`; its exit status is 0 then.

    With `quiet`, what libraries that are not written in Python print to stderr is kept with the description of a fault.
    """

    def __init__(self, work: Callable[[Channel], None], *, quiet: bool = False) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - where a fault is described; as long as the process lives
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # what is in a buffer would be written twice
                stream.flush()
        with _FORKING:
            ours, theirs = Pipe()
            # A handler of the caller that raises in the child, before it has its own, would have it go on as the caller.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
            try:
                self.pid = os.fork()
                if self.pid == 0:
                    run_child(work, theirs, [ours, *_OURS], self._words.fileno(), quiet)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _OURS.add(ours)
        theirs.close()
        with contextlib.suppress(OSError):  # the child does it as well: whichever comes first
            os.setpgid(self.pid, self.pid)
        self.channel = Channel(ours)
        self._status: int | None = None

    def is_alive(self) -> bool:
        return self._poll() is None

    def death(self) -> Death:
        """Why the process ended; it is waited for."""
        while self._status is None:
            self._reap(0)
        self._words.seek(0)
        return read_death(self._status, self._words.read().decode(errors="replace"))

    def describe_where(self) -> None:
        """Have the process write down where it is, for the `death` that follows."""
        before = os.fstat(self._words.fileno()).st_size
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGUSR2)
        deadline = time.monotonic() + _DESCRIBES_WITHIN_S
        while os.fstat(self._words.fileno()).st_size == before and self.is_alive() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self.channel.is_ready(_POLL_S)  # the rest of the lines

    def stop(self) -> None:
        """Ask the process to end, and wait for a moment: it may put away a file that it has begun to write."""
        if self._poll() is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGTERM)
            deadline = time.monotonic() + _STOPS_WITHIN_S
            while self._poll() is None and time.monotonic() < deadline:
                time.sleep(_POLL_S)

    def kill(self) -> None:
        """End the process, and all that it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._poll() is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap(0)

    def close(self) -> None:
        """End the process and let go of everything that is held for it."""
        self.kill()
        self.channel.close()
        self._words.close()

    def _poll(self) -> int | None:
        if self._status is None:
            self._reap(os.WNOHANG)
        return self._status

    def _reap(self, how: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, how)
        except ChildProcessError:  # somebody else has waited for it: the caller's own handler of SIGCHLD, say
            self._status = 0
            return
        if pid == self.pid:
            self._status = os.waitstatus_to_exitcode(status)


def run_child(
    work: Callable[[Channel], None], theirs: Connection, others: list[Connection], words: int, quiet: bool
) -> NoReturn:
    """In the child: run the work, and end without what the caller's process does at its end.

    SIGTERM raises `Stopped` once, wherever this is: raised while one `finally` runs, it still meets the other. Nothing leaves
    this function, or the child would go on as the caller.
    """
    status = 1
    try:
        try:
            _prepare_child(theirs, others, words)
            if quiet:
                _keep_words(words)
            work(Channel(theirs))
            status = 0
        except (Gone, Stopped):
            status = 0
        except BaseException:
            faulthandler.dump_traceback(words)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
    finally:
        try:
            os._exit(status)
        finally:
            os._exit(status)


def _prepare_child(theirs: Connection, others: list[Connection], words: int) -> None:
    become_own_process()
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    _end_with_parent()
    for connection in others:
        connection.close()
    _OURS.clear()
    _OURS.add(theirs)
    _FORKING.release()  # the fork holds it for us
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # handlers of the caller are for the caller's process
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _on_stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group of a terminal; the caller decides
    faulthandler.enable(words, all_threads=False)
    # The signal may come to a thread that a library keeps; of all threads, the one that the work runs in is written last.
    faulthandler.register(signal.SIGUSR2, words, all_threads=True)
    if gc.get_threshold()[0]:
        gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    gc.freeze()  # what is there stays: to look through it would copy its pages
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)


def _keep_words(words: int) -> None:
    """Send what is written to the handle of stderr to a file: what a library prints before it gives up."""
    os.dup2(words, 2)


def _on_stop(number: int, frame: Any) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


def _end_with_parent() -> None:
    """Have the system kill this process when the thread that forked it ends."""
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended meanwhile
        os._exit(0)
