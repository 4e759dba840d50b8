"""Start and end one child process; its interpreter finds the same packages as this one.

The child takes over our `sys.path` as it is now, in another order: Python's own modules first, then this package and the
installed ones. A file in the user's folder that has the name of one of them (`queue.py`) is not imported in its place.

The temporary file behind its stderr has no name, and a finalizer ends the process: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import IO, Any, BinaryIO, cast

import psutil

from anyshape.findings.finding import PACKAGE_FOLDER
from anyshape.processes.quiet import LOG
from anyshape.runtime.child_messages import ChildDied, Death, Message, read_message, reply_to_call, write_message
from anyshape.runtime.session import NO_TELEMETRY, TensorInfo

_START = "import sys; sys.path[:] = sys.argv[1:]; from anyshape.runtime.child import main; main()"
_INSTALLED = ("site-packages", "dist-packages")
_SLICE_S = 0.2
_STDERR_TAIL = 2000
_PIPE_BYTES = 1 << 20
_MEMORY_WORDS = ("bad_alloc", "MemoryError", "Cannot allocate memory", "failed to allocate")


def child_command() -> list[str]:
    """The command line of a child."""
    if not sys.executable:
        raise RuntimeError("sys.executable is empty: an embedded interpreter cannot start a child process")
    return [sys.executable, "-P", "-c", _START, *child_search_path()]


def package_parent() -> str:
    """The folder that holds the package; also the child's working folder, so that nothing there shadows a module."""
    return str(PACKAGE_FOLDER.parent)


def child_environment() -> dict[str, str]:
    """Our environment without its search path, which the command has, a thread pool per library, and telemetry."""
    inherited = dict([NO_TELEMETRY]) | {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


def child_search_path() -> list[str]:
    """Our `sys.path`: the folders of Python's own modules, of this package, of installed packages, then all others."""
    entries = list(dict.fromkeys(str(Path(entry).absolute()) for entry in sys.path if entry))
    standard = [entry for entry in entries if _is_standard(Path(entry))]
    installed = [entry for entry in entries if Path(entry).name in _INSTALLED]
    return list(dict.fromkeys([*standard, package_parent(), *installed, *entries]))


def _is_standard(folder: Path) -> bool:
    """Whether a folder or zip file of `sys.path` holds Python's own modules."""
    own = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return folder in own or folder.name == zipped or (folder.name == "lib-dynload" and folder.parent in own)


def usable_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def seconds_worked(pid: int) -> float | None:
    """The processor time that a process has used, None where the process is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return times.user + times.system


def physical_memory() -> int:
    """Bytes of memory of this machine."""
    return int(psutil.virtual_memory().total)


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
        """The processor time that the child has used; None where the system does not report it."""
        return seconds_worked(self.pid)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def loaded(self) -> Message | None:
        """The reply to loading the model: of the kind "loaded" where that went well; None before it, and without a child."""
        return self._loaded

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
            reply = self._ask(reply_to_call(reply, self._operators))
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
