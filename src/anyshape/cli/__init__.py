"""The command line.

This file: what commands have in common: options with their help, and arguments that need reading.

Model files print when they are imported and when they are called; `--json` must stay JSON all the same.

Files, in the order in which data flows:

    system_errors   what the system refuses
    outcome         what goes to stdout and stderr, and the files of a command
    main            the entry point: commands, errors -> exit status
    export_command  export
    batch_command   batch, and its progress
    commands        axes, check, inspect, explain
    file_commands   compare, bench, fix, freeze, deploy
    late_options    --report, and --ray of check and export
"""

from __future__ import annotations

import logging
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from anyshape.cli.outcome import Outcome as Outcome
from anyshape.domain import format_sizes
from anyshape.findings import Finding, UsageError
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
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files of another kind than what is written in their place, too.")
]
Measure = Annotated[
    bool, typer.Option("--measure", help="Measure latency and memory at five sizes, for the maps of --report.")
]


TimeLimit = Annotated[str, typer.Option("--time-limit", help="Time for the whole command, such as 60s or 10m.")]


_SIZE = re.compile(r"\s*[0-9]{1,18}\s*")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_ADDRESS = re.compile(r"auto|local|ray://\S+|[\w.-]+:\d+")
LIBRARIES = 2
TIME_LIMIT = "10m"  # of a command without such an option


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


def is_size(text: str) -> bool:
    """Whether the text is a whole number of at most 64 bits; other digits than 0 to 9 are none."""
    return _SIZE.fullmatch(text) is not None


def read_sizes(text: str, what: str, fix: str) -> dict[str, int]:
    """`batch=8,seq=128`. `what` and `fix` are the words about a part that is no size, `{part!r}` in them the part."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not is_size(size):
            raise UsageError(Finding(code="AS036", name="argument", what=what.format(part=part), fix=fix))
        found[name.strip()] = int(size)
    return found


def sizes_of(text: str, option: str) -> dict[str, int]:
    """The sizes in the text of an option."""
    return read_sizes(text, f"{option} has {{part!r}}, which is no size.", f"{option} batch=8,seq=128")


def read_ranges(text: str) -> dict[str, tuple[int, int]]:
    """`past=0..511,seq=1`."""
    found = {}
    for part in text.split(","):
        name, _equals, ends = part.partition("=")
        low, dots, high = ends.partition("..")
        if not is_size(low) or (dots and not is_size(high)):
            what, fix = f"--profile has {part!r}, which is no size.", "--profile past=0..511,seq=1"
            raise UsageError(Finding(code="AS036", name="argument", what=what, fix=fix))
        found[name.strip()] = (int(low), int(high) if dots else int(low))
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
    return [
        f"{each}=auto" if each == "--ray" and not _ADDRESS.fullmatch(after) else each
        for each, after in pairwise([*args, ""])
    ]


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
