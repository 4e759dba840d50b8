"""The command line.

This file: what commands have in common: options with their help, arguments that need reading, and what goes to stdout and
stderr.

Model files print when they are imported and when they are called; `--json` must stay JSON all the same.

Files, in the order in which data flows:

    main            the entry point: commands, errors -> exit status
    export_command  export
    batch_command   batch, and its progress
    commands        axes, check, inspect, explain
    file_commands   compare, bench, fix, freeze, deploy
    late_options    --report, and --ray of check and export
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from anyshape.domain import format_sizes
from anyshape.findings import AnyshapeError, Finding, UsageError
from anyshape.report.progress_line import ProgressLine as ProgressLine

if TYPE_CHECKING:
    from anyshape.inputs import Declared
    from anyshape.sources import Part, SourceOptions

SourceText = Annotated[
    str,
    typer.Argument(
        help="FILE.py, FILE.py:NAME, package.module:Class, hf:PATH_OR_ID, timm:NAME, or what a package registers.",
        metavar="SOURCE",
        show_default=False,
    ),
]
Task = Annotated[
    str | None, typer.Option(help="For hf: in place of what the architecture decides, such as text-classification.")
]
ConfigOnly = Annotated[
    bool, typer.Option("--config-only", help="For hf: and timm: random weights, from the config alone.")
]
OneFile = Annotated[bool, typer.Option("--one-file", help="For hf: an encoder-decoder as one file, without a cache.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="For hf: run Python code that comes with the model.")
]
ModelSource = Annotated[
    str, typer.Option("--model", "-m", help="FILE.py or another source, as for export.", show_default=False)
]
Provider = Annotated[
    list[str],
    typer.Option(help="An execution provider of onnxruntime: CUDAExecutionProvider. May be given several times."),
]
Where = Annotated[
    list[str], typer.Option("--where", "-w", help="A rule: '1 <= batch <= 64'. May be given several times.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Seed = Annotated[int, typer.Option(help="Seed of the random inputs and sizes.")]
Budget = Annotated[
    str,
    typer.Option(help="Estimated time of all comparisons, such as 60s or 5m; the most informative sizes come first."),
]
Rtol = Annotated[float | None, typer.Option(help="Relative tolerance in place of the measured noise floor.")]
Values = Annotated[
    str | None, typer.Option(help="'given': compare on the values of inputs() alone, without edge values.")
]
Atol = Annotated[float | None, typer.Option(help="Absolute tolerance in place of the measured noise floor.")]
Report = Annotated[
    Path | None, typer.Option(help="Write the result, or the refusal, as one HTML page: out.html.", show_default=False)
]
Measure = Annotated[
    bool, typer.Option("--measure", help="Measure latency and memory at five sizes, for the maps of --report.")
]


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_ADDRESS = re.compile(r"auto|local|ray://\S+|[\w.-]+:\d+")
LIBRARIES = 2


def parse_seconds(text: str, option: str = "--budget") -> float:
    """`60s`, `5m`, `1.5h` or plain seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            Finding(
                code="AS036", name="argument", what=f"{option} {text!r} is no duration.", fix=f"{option} 60s, or 5m"
            )
        )
    return float(match[1]) * _SECONDS[match[2] or "s"]


def read_sizes(text: str, what: str, fix: str) -> dict[str, int]:
    """`batch=8,seq=128`. `what` and `fix` are the words about a part that is no size, `{part!r}` in them the part."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not size.strip().isdigit():
            raise UsageError(Finding(code="AS036", name="argument", what=what.format(part=part), fix=fix))
        found[name.strip()] = int(size)
    return found


def parse_sizes(text: str, declared: Declared) -> dict[str, int] | None:
    """`batch=1,seq=7`; empty means none given. Every dim of the domain needs its size."""
    if not text:
        return None
    sizes = read_sizes(
        text, "--sizes has {part!r}, which is no size.", f"--sizes {format_sizes(declared.example_sizes, ',')}"
    )
    for name in sizes:
        declared.domain.dim(name)
    missing = [dim for dim in declared.domain.names if dim not in sizes]
    if missing:
        raise UsageError(
            Finding(code="AS036", name="argument", what=f"--sizes gives no size for {', '.join(missing)}.")
        )
    return sizes


def load_part_showing(text: str, file: Path, options: SourceOptions | None = None, *, quiet: bool) -> Part:
    """The model of a source that belongs to a file; shows that it is loaded, unless `quiet`."""
    from anyshape.sources import load_part

    with ProgressLine(quiet=quiet) as progress:
        progress(f"loading {text}", 0, 0)
        return load_part(text, file, options)


RayAddress = Annotated[
    str | None,
    typer.Option("--ray", help="Run on a Ray cluster; without ADDRESS, on that of this machine.", metavar="[ADDRESS]"),
]
RayForComparisons = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Spread the comparisons over a Ray cluster; without ADDRESS, that of this machine.",
        metavar="[ADDRESS]",
    ),
]


class WithRayAddress(TyperCommand):
    """A command whose `--ray` may stand without an address: it is then the cluster of this machine."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_ray_address(args))


def with_ray_address(args: list[str]) -> list[str]:
    """`--ray` that no address follows -> `--ray=auto`."""
    pairs = zip(args, [*args[1:], ""], strict=True)
    return [f"{each}=auto" if each == "--ray" and not _ADDRESS.fullmatch(after) else each for each, after in pairs]


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
