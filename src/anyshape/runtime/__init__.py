"""Running ONNX files: in this process (`Session`), or in a child that may crash, hang or starve (`ChildRunner`).

This file: our side of the child process: submit a run, compute meanwhile, wait for it no longer than allowed.

All pipe traffic happens in one thread per exchange, so that the caller can compute meanwhile and a child that neither
reads nor writes can always be given up: killing it ends the thread's read or write, whichever it hangs in. A custom operator
runs in that thread, too, and can be ended by nobody: the thread is waited for a few seconds, and then left to itself.

Files, in the order in which data flows:

    child_messages    what goes over the pipes, the errors of a run, element types that numpy lacks
    runtimes          the tuple RUNTIMES: what can run a file; custom nodes, and the user's functions between pieces
    session           onnxruntime, its only import; the operators of a bfloat16 file that it has no kernel for
    openvino_session  OpenVINO, its only import
    custom_node_plan  a model with custom nodes -> pieces
    process           start and end the child process
    child             what child processes do: run a model, time its calls, optimize a file
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from anyshape.runtime.child_messages import Array, ChildDied, Death, Message, RunError, RuntimeFailed, RuntimeRejected
from anyshape.runtime.process import ChildProcess, physical_memory
from anyshape.runtime.runtimes import ONNXRUNTIME, PiecedSession, open_session
from anyshape.runtime.session import CPU, Session, TensorInfo

__all__ = [
    "ChildDied",
    "ChildRunner",
    "Death",
    "Pending",
    "PiecedSession",
    "RunError",
    "RuntimeFailed",
    "RuntimeRejected",
    "Session",
    "TensorInfo",
    "open_session",
]


_WALL = 10.0
_SLICE_S = 0.2  # a wait that nothing can interrupt
_TICK_S = 0.02  # the operating system counts processor time in steps of about this length
_END_S = (
    5.0  # for the thread of an exchange to end once its child is dead; a custom operator of the user may never return
)


class Pending:
    """A run that is under way in the child."""

    def __init__(
        self, runner: ChildRunner, process: ChildProcess, request: Message, *, is_second_try: bool = False
    ) -> None:
        self._runner = runner
        self._process = process
        self._request = request
        self._is_second_try = is_second_try
        self._started = monotonic()
        self._worked_before = process.seconds_worked()
        self._reply: Message | Exception | None = None
        self._finished = threading.Event()
        self.waited_s = 0.0  # how long callers of `result` have waited
        self._thread = threading.Thread(target=self._exchange, args=(request,), daemon=True)
        self._thread.start()

    def _exchange(self, request: Message) -> None:
        try:
            self._reply = self._process.exchange(request)
        except Exception as error:
            self._reply = error
        finally:
            self._finished.set()

    def result(self, time_limit_s: float | None = None) -> list[Array]:
        """The outputs, once they are there. Raises RuntimeFailed, RuntimeRejected or ChildDied.

        The time limit is on what the child works, so that a busy machine changes nothing; one that does not even work has
        `_WALL` times as long. Where the system does not report its work, all time counts since the run was submitted, or the
        model was loaded if that came later.
        """
        limit = self._runner.time_limit_s if time_limit_s is None else time_limit_s
        began = monotonic()
        try:
            loaded_at = self._process.wait_until_loaded(self._started + self._runner.load_limit_s)
            if loaded_at is None:
                raise self._give_up(f"took longer than {self._runner.load_limit_s:g} s to load")
            if not self._is_done(max(self._started, loaded_at), limit):
                raise self._give_up(f"took longer than {limit:g} s")
        except BaseException as error:  # Ctrl-C, or the end of the time: never leave a busy child behind
            if not isinstance(error, Exception):
                self._process.kill()
            raise
        finally:
            self.waited_s = monotonic() - began
        self._thread.join()
        try:
            return _outputs(self._process, self._reply)
        except ChildDied as died:
            if died.death is not Death.CRASHED or self._is_second_try:
                raise
        # It may have been killed from outside: the same end twice is a fact about the file.
        again = self._runner.submit_again(self._request)
        return again.result(time_limit_s)

    def _is_done(self, since: float, limit: float) -> bool:
        """Whether the run ends before the child has worked on it for so long."""
        while True:
            left = min(limit - self._seconds_worked(since), _WALL * limit - (monotonic() - since))
            if self._finished.wait(min(max(0.0, left / self._runner.threads) + _TICK_S, _SLICE_S)):
                return True
            if left <= 0:
                return False

    def _seconds_worked(self, since: float) -> float:
        now = self._process.seconds_worked()
        before = [each for each in (self._worked_before, self._process.worked_to_load) if each is not None]
        return monotonic() - since if now is None or not before else now - max(before)

    def _give_up(self, how: str) -> ChildDied:
        self._process.kill()
        self._leave()
        return ChildDied(how, Death.TIMED_OUT)

    def discard(self, patience_s: float = 1.0) -> None:
        """Forget this run; a child that is still at it after `patience_s` is killed."""
        if not self._finished.wait(patience_s):
            self._process.kill()
            self._leave()

    def _leave(self) -> None:
        """Wait for the thread of a child that is dead; one in which a custom operator does not return is left behind."""
        self._thread.join(_END_S)
        self._finished.set()


class ChildRunner:
    """Runs one ONNX file in a child process, restarted after each death; a context manager. `runtime` is one of RUNTIMES.

    `memory_limit` is in bytes of address space; None: this machine's physical memory. `operators` run custom
    nodes, by name: in this process, since a child has none of the user's functions.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        threads: int = 1,
        time_limit_s: float = 60.0,
        load_limit_s: float = 300.0,
        memory_limit: int | None = None,
        optimize: bool = True,
        operators: Mapping[str, Callable[..., Any]] | None = None,
        providers: Sequence[str] = (CPU,),
        runtime: str = ONNXRUNTIME.name,
    ) -> None:
        self._operators = dict(operators or {})
        self.threads = max(1, threads)
        self.time_limit_s = time_limit_s
        self.load_limit_s = load_limit_s
        self._load = Message(
            "load",
            {
                "path": str(Path(fspath(path)).absolute()),
                "threads": threads,
                "optimize": optimize,
                "memory_limit": physical_memory() if memory_limit is None and set(providers) == {CPU} else memory_limit,
                "providers": list(providers),
                "operators": list(self._operators),
                "runtime": runtime,
            },
        )
        self._process: ChildProcess | None = None
        self._pending: Pending | None = None

    def submit(self, feeds: Mapping[str, Array]) -> Pending:
        """Start a run and return at once; one at a time."""
        if self._pending is not None and not self._pending._finished.is_set():
            raise RuntimeError("the run before this one has neither been collected nor discarded")
        self.start()
        assert self._process is not None
        self._pending = Pending(self, self._process, Message("run", {}, dict(feeds)))
        return self._pending

    def submit_again(self, request: Message) -> Pending:
        """The same run in a fresh child."""
        self.start()
        assert self._process is not None
        self._pending = Pending(self, self._process, request, is_second_try=True)
        return self._pending

    def start(self) -> None:
        """Start the child and let it load the model meanwhile; what comes of it shows in the first run."""
        if self._process is None or not self._process.is_alive():
            self._bury()
            self._process = ChildProcess(self._load, self._operators)

    def load(self) -> None:
        """Wait until the child has loaded the model. Raises RuntimeRejected or ChildDied where it does not."""
        self.start()
        assert self._process is not None
        if self._process.wait_until_loaded(monotonic() + self.load_limit_s) is None:
            self._process.kill()
            raise ChildDied(f"took longer than {self.load_limit_s:g} s to load", Death.TIMED_OUT)
        reply = self._process.loaded
        if reply is None or reply.kind != "loaded":
            _outputs(self._process, reply)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs in the file's order. Raises RuntimeFailed, RuntimeRejected or ChildDied."""
        return self.submit(feeds).result()

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is no child."""
        return self._process.pid if self._process is not None and self._process.is_alive() else None

    @property
    def inputs(self) -> tuple[TensorInfo, ...] | None:
        """The inputs as the file declares them, None before the first run."""
        return self._process.described("inputs") if self._process is not None else None

    @property
    def outputs(self) -> tuple[TensorInfo, ...] | None:
        """The outputs as the file declares them, None before the first run."""
        return self._process.described("outputs") if self._process is not None else None

    def close(self) -> None:
        """Kill the child, if there is one."""
        self._bury()

    def _bury(self) -> None:
        if self._process is not None:
            self._process.kill()
            if self._pending is not None:
                self._pending.discard(0.0)
            self._process.close()
            self._process = self._pending = None

    def __enter__(self) -> ChildRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _outputs(process: ChildProcess, reply: Message | Exception | None) -> list[Array]:
    if isinstance(reply, Exception):
        raise reply
    if reply is None:
        raise process.cause_of_death()
    facts = reply.facts
    if reply.kind == "done":
        return list(reply.arrays.values())
    if reply.kind == "rejected":
        raise RuntimeRejected(facts["message"], facts["unsupported"])
    if facts["memory"]:
        process.kill()  # what its allocator still holds would make the next run fail as well
        raise ChildDied("ran out of memory", Death.OUT_OF_MEMORY, facts["message"])
    raise RuntimeFailed(facts["message"])
