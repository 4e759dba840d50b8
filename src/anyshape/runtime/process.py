"""One life of a child process, from its start to its burial.

The temporary file behind its stderr has no name, and a finalizer ends the process: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from time import monotonic
from typing import IO, Any, BinaryIO, cast

from anyshape.modules.quiet import LOG
from anyshape.runtime.errors import ChildDied, Death
from anyshape.runtime.frames import Message, read_message, write_message
from anyshape.runtime.launch import child_command, child_environment, package_parent, seconds_worked
from anyshape.runtime.remote import answer_call
from anyshape.runtime.session import TensorInfo

_SLICE_S = 0.2
_STDERR_TAIL = 2000
_PIPE_BYTES = 1 << 20
_MEMORY_WORDS = ("bad_alloc", "MemoryError", "Cannot allocate memory", "failed to allocate")


class ChildProcess:
    """A started child that loads its model; `exchange` may block as long as the child pleases, until it is killed."""

    def __init__(self, load: Message, operators: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._load = load
        self._operators = operators or {}
        self._loaded: Message | None = None
        self._loaded_at: float | None = None
        self.worked_to_load: float | None = None
        self._load_ended = threading.Event()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._process = subprocess.Popen(
            child_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=package_parent(),
            env=child_environment(),
        )
        _widen(self._process)
        # Also when the runner is dropped without being closed, and at the end of the interpreter.
        self._finalizer = weakref.finalize(self, _end, self._process, self._stderr)
        self._loading = threading.Thread(target=self._have_it_loaded, daemon=True)
        self._loading.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def seconds_worked(self) -> float | None:
        """The processor time that the child has used; None where the system does not tell."""
        return seconds_worked(self.pid)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def described(self, which: str) -> tuple[TensorInfo, ...] | None:
        if self._loaded is None or self._loaded.kind != "loaded":
            return None
        facts = self._loaded.facts[which]
        return tuple(TensorInfo(fact["name"], fact["dtype"], tuple(fact["shape"])) for fact in facts)

    def exchange(self, request: Message) -> Message | None:
        """The reply to `request`, or to loading the model where that went wrong; None when the child is gone."""
        self._load_ended.wait()
        if self._loaded is None or self._loaded.kind != "loaded":
            return self._loaded
        reply = self._ask(request)
        while reply is not None and reply.kind == "call":
            reply = self._ask(answer_call(reply, self._operators))
        return reply

    def _have_it_loaded(self) -> None:
        try:
            self._loaded = self._ask(self._load)
        finally:
            self.worked_to_load = self.seconds_worked()
            self._loaded_at = monotonic()
            self._load_ended.set()

    def wait_until_loaded(self, deadline: float) -> float | None:
        """When the model was loaded, or turned out not to be loadable; None if that takes beyond the deadline."""
        while not self._load_ended.wait(_SLICE_S) and monotonic() < deadline:
            pass  # in slices: a single wait could not be interrupted
        return self._loaded_at

    def _ask(self, request: Message) -> Message | None:
        with contextlib.suppress(OSError, ValueError):  # gone, or its pipes closed by us: the read tells
            write_message(cast(BinaryIO, self._process.stdin), request)
        try:
            return read_message(cast(BinaryIO, self._process.stdout))
        except (OSError, ValueError):
            return None

    def cause_of_death(self) -> ChildDied:
        """In words, once the child has closed its pipes."""
        status = self._process.wait()
        detail = self._last_words()
        if any(words in detail for words in _MEMORY_WORDS):
            return ChildDied("ran out of memory", Death.OUT_OF_MEMORY, detail)
        if status >= 0:
            return ChildDied(f"ended with status {status}", Death.CRASHED, detail)
        try:
            name = f" ({signal.Signals(-status).name})"
        except ValueError:
            name = ""
        return ChildDied(f"crashed with signal {-status}{name}", Death.CRASHED, detail)

    def _last_words(self) -> str:
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - _STDERR_TAIL))
        return self._stderr.read().decode(errors="replace").strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._loading.join()
        if LOG.isEnabledFor(logging.DEBUG) and (words := self._last_words()):
            LOG.debug("onnxruntime: %s", words)
        self._finalizer()


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was still to be flushed has no reader
                stream.close()


def _widen(process: subprocess.Popen[bytes]) -> None:
    """Larger pipes halve the time that large arrays take; where the system cannot, they stay as they are."""
    try:
        import fcntl

        for stream in (process.stdin, process.stdout):
            fcntl.fcntl(cast(BinaryIO, stream), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        pass
