"""Options that several commands have, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    Path | None,
    typer.Option(help="Write the result, or the refusal, as one HTML page: out.html.", show_default=False),
]
Measure = Annotated[
    bool, typer.Option("--measure", help="Measure latency and memory at five sizes, for the maps of --report.")
]
