"""What a command prints: its result on stdout and nothing else there; progress, prints of the model and, with -vv, log lines
of other libraries on stderr.

Model files print when they are imported and when they are called; `--json` must stay JSON all the same.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from anyshape.findings import AnyshapeError, Finding, UsageError
from anyshape.report.progress_line import ProgressLine as ProgressLine

Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Show what each rung said, and every guard; -vv: log lines, graphs and tracebacks of torch, too.",
    ),
]
LIBRARIES = 2


def show_details(verbose: int) -> None:
    """From -vv on, write everything that is logged below `anyshape` to stderr."""
    if verbose < LIBRARIES:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("anyshape: %(message)s"))
    logger = logging.getLogger("anyshape")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False


class Interrupted(Exception):
    """Ctrl-C, as an error of ours: each version of typer does something else with Python's own."""


Printed = str | Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a command prints on stdout, and how it ends: an exit status, or an error that is raised afterwards."""

    printed: Printed | None = None
    status: int = 0
    error: AnyshapeError | None = None


def with_outcome(command: Callable[..., Outcome]) -> Callable[..., None]:
    """The command as typer calls it: prints of the user's code go to stderr, its own outcome to stdout."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                outcome = command(*args, **kwargs)
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except SystemExit as error:
            raise UsageError(_model_exits(error)) from error
        if outcome.printed is not None:
            show(outcome.printed)
        if outcome.error is not None:
            raise outcome.error
        if outcome.status:
            raise typer.Exit(outcome.status)

    return run


def show(printed: Printed) -> None:
    """Write a result to stdout: a text as it is, anything else as JSON."""
    text = printed if isinstance(printed, str) else json.dumps(printed, indent=2, allow_nan=False)
    try:
        sys.stdout.write(text.rstrip() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (`| head`) has gone: nothing is left to write to
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        sys.stdout = os.fdopen(own, "w", encoding=stdout.encoding, errors="backslashreplace")
        if isinstance(sys.stderr, io.TextIOWrapper):
            sys.stderr.reconfigure(errors="backslashreplace")
        return True
    return False


def _model_exits(error: SystemExit) -> Finding:
    code = "" if error.code is None else repr(error.code)
    return Finding(
        code="AS062",
        name="model-exits",
        what=f"the model's own code ended the process: sys.exit({code}).",
        why="a model file is imported, and its functions are called: nothing in them may end the process.",
        fix='if __name__ == "__main__":      around what is only for running the file by itself',
        is_fix_untried=True,
    )
