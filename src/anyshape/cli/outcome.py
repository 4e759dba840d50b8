"""What a command prints and how it ends, and the files that it reads and writes: checked before any command begins."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import math
import os
import signal
import sys
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from anyshape.cli.system_errors import StdoutRefused, check_working_folder, stdout_refused, system_refuses
from anyshape.findings import AnyshapeError, Finding, PromiseBroken, UsageError
from anyshape.findings.finding import shown_lines
from anyshape.processes import can_fork, is_own_process
from anyshape.processes.forked import Stopped
from anyshape.processes.isolated import call_in_own_process

if TYPE_CHECKING:
    from anyshape.saving.outputs import Command


class Interrupted(Exception):
    """Ctrl-C, as an error of ours: each version of typer does something else with Python's own.

    `written` has the outputs that were in their places by then.
    """

    def __init__(self, written: Sequence[Path] = ()) -> None:
        super().__init__(written)
        self.written = written


Printed = str | Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a command prints on stdout, and how it ends: an exit status, or an error that is raised afterwards."""

    printed: Printed | None = None
    status: int = 0
    error: AnyshapeError | None = None


# The arguments by which commands name what they read and what they write.
_READ = ("source", "model", "models", "file", "other", "ort_web")
_WRITTEN = {"output": "--output", "report": "--report", "write_diff": "--write-diff", "plot": "--plot"}


def _files_of(given: Mapping[str, Any]) -> contextlib.AbstractContextManager[Command]:
    """What a command with these arguments reads, and whether it may replace files of other kinds than its own."""
    from anyshape.saving.outputs import command_files

    named = [given.get(name) or () for name in _READ]
    reads = [each for value in named for each in (value if isinstance(value, (list, tuple)) else [value])]
    return command_files(*reads, overwrite=given.get("overwrite", False))


def _check_outputs(given: Mapping[str, Any]) -> None:
    """Raise UsageError before the work where an output cannot be written. A command checks its `--output` itself."""
    from anyshape.saving import check_writable
    from anyshape.saving.outputs import CHART, DIFF, PAGE, check_distinct

    check_distinct((option, given.get(name)) for name, option in _WRITTEN.items())
    for name, kind in (("report", PAGE), ("write_diff", DIFF), ("plot", CHART)):
        if given.get(name) is not None:
            check_writable(given[name], kind)


def with_outcome(command: Callable[..., Outcome], *, apart: bool = True) -> Callable[..., None]:
    """The command as typer calls it: prints of the user's code go to stderr, its own outcome to stdout.

    `apart`: it runs in a process of its own, from the import of the model's file on, within its `--time-limit`; a command
    that has no such option gets it. A process of ours (of a model of a batch) is already one of its own.
    """
    takes_limit = "time_limit" in inspect.signature(command).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        from anyshape.cli import TIME_LIMIT, parse_seconds, show_details

        show_details(given.get("verbose", 0))  # before the fork: a forked process sends its log lines to this one
        seconds = parse_seconds(given.get("time_limit", TIME_LIMIT), "--time-limit") if apart else math.inf
        if not takes_limit:
            given.pop("time_limit", None)

        def outcome_of(tell: Any = None) -> Outcome:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    check_working_folder()
                    _check_outputs(given)
                    return command(**given)
            except SystemExit as error:
                code = "" if error.code is None else repr(error.code)
                raise UsageError(_model_exits(f"sys.exit({code})")) from error
            except (Exception, KeyboardInterrupt, Stopped):
                raise
            except BaseException as error:  # of the model's own code: nothing else raises one
                raise UsageError(_model_exits(f"raise {type(error).__name__}")) from error

        with _files_of(given) as files:
            try:
                if apart and can_fork() and not is_own_process():
                    files.note(given[name] for name in _WRITTEN if given.get(name) is not None)
                    outcome = call_in_own_process(outcome_of, seconds=seconds, prepare=_without_programs)
                else:
                    outcome = outcome_of()
            except KeyboardInterrupt as error:
                raise Interrupted(files.written()) from error
            except OSError as error:
                refused_use = system_refuses(error)
                if refused_use is None:
                    raise
                raise UsageError(refused_use) from error
        refused = None if outcome.printed is None else show(outcome.printed)
        if outcome.error is not None:
            raise outcome.error
        if refused is not None:
            raise UsageError(stdout_refused(refused, files.written()))
        if outcome.status:
            raise typer.Exit(outcome.status)

    if apart and not takes_limit:
        _add_time_limit(run, command)
    return run


def _add_time_limit(run: Callable[..., None], command: Callable[..., Outcome]) -> None:
    """Let typer see the option `--time-limit`, which the command itself does not take."""
    from anyshape.cli import TIME_LIMIT, TimeLimit

    own = inspect.signature(command, eval_str=True)
    added = inspect.Parameter("time_limit", inspect.Parameter.KEYWORD_ONLY, default=TIME_LIMIT, annotation=TimeLimit)
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), added])  # type: ignore[attr-defined]
    run.__annotations__ = {**typing.get_type_hints(command, include_extras=True), "time_limit": TimeLimit}


def _without_programs(result: Any) -> Any:
    from anyshape.records.export import Attempt, without_programs

    if isinstance(result, Outcome) and isinstance(result.error, PromiseBroken):
        result.error.attempts = tuple(map(without_programs, result.error.attempts))
    return without_programs(result) if isinstance(result, Attempt) else result


@contextlib.contextmanager
def ending_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a command as Ctrl-C does; a second signal does not disturb the clearing up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Whoever ignores SIGHUP (nohup) goes on without a terminal.
    numbers = [each for each in numbers if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show(printed: Printed) -> OSError | None:
    """Write a result to stdout: a text with escapes for characters that are not seen, anything else as JSON.

    The error comes back where stdout cannot be written.

    A reader who has gone (`| head`), and a stdout that was closed (`>&-`), have asked for no more: neither is an error.
    """
    text = shown_lines(printed) if isinstance(printed, str) else json.dumps(printed, indent=2, allow_nan=False)
    try:
        sys.stdout.write(text.rstrip() + "\n")
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # what is still to be flushed when the process ends has no place
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None if isinstance(error, BrokenPipeError) else error
    return None


def open_closed_handles() -> None:
    """Open those of the handles 0, 1 and 2 that are closed, or a file that we open next gets the number of stdout, and
    whatever a library prints."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends


class _Results(io.FileIO):
    """Stdout, whose errors are told from those of any other file."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutRefused(error.errno, error.strerror) from error


class _Remarks(io.FileIO):
    """Stderr. Nobody loses a result because progress and remarks cannot be written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _text(raw: io.FileIO, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="backslashreplace", line_buffering=True)


def keep_stdout_for_results() -> bool:
    """Give sys.stdout a handle of its own, and send everything else that writes to handle 1 to stderr.

    For a process of our own only: C++ code and child processes write to the handle, past Python. Where sys.stdout is not
    the process's (a test, a notebook) nothing is done, and False comes back.
    """
    stdout = sys.__stdout__
    if stdout is None or sys.stdout is not stdout:
        return False
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        if stdout.fileno() != 1:
            return False
        stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = _text(_Results(own, "w"), stdout.encoding)
        stderr = sys.__stderr__
        if stderr is not None and sys.stderr is stderr and stderr.fileno() == 2:
            sys.stderr = _text(_Remarks(2, "w", closefd=False), stderr.encoding)
        return True
    return False


def _model_exits(how: str) -> Finding:
    return Finding(
        code="AS062",
        name="model-exits",
        what=f"the model's own code ended the process: {how}.",
        why="a model file is imported, and its functions are called: nothing in them may end the process.",
        fix='if __name__ == "__main__":      around what is only for running the file by itself',
        is_fix_untried=True,
    )
