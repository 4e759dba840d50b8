"""The command `anyshape deploy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from anyshape.cli.options import AsJson, Outcome, ProgressLine, Quiet, read_sizes
from anyshape.findings import Finding, UsageError

__is_entrance__ = True


def deploy(
    file: Annotated[Path, typer.Argument(help="An ONNX file that anyshape wrote.", show_default=False)],
    to: Annotated[str, typer.Option(help="tensorrt, triton, openvino or web.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", show_default=False)],
    at: Annotated[
        list[str], typer.Option(help="Usual sizes: batch=8,seq=128. May be given several times. Default: the middle.")
    ] = [],  # noqa: B006
    largest: Annotated[
        list[str], typer.Option("--max", help="Largest sizes, for dims that have no end: seq=512.")
    ] = [],  # noqa: B006
    profile: Annotated[
        list[str],
        typer.Option(help="A profile of TensorRT: past=0..511,seq=1. May be given several times. Default: chosen."),
    ] = [],  # noqa: B006
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="FILE.py, as for export: compare what OpenVINO runs with it.")
    ] = None,
    ort_web: Annotated[
        Path | None, typer.Option("--ort-web", help="A folder with the npm package onnxruntime-web. Default: npm.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Write a folder that serves a file, from its contract alone.

    anyshape deploy m.onnx --to tensorrt -o engine --at batch=8,seq=128 --max seq=512

    anyshape deploy m.onnx --to triton -o repository

    anyshape deploy m.onnx --to openvino -o ir --model model.py

    anyshape deploy m.onnx --to web -o page
    """
    from anyshape.deploying.deploy_file import deploy as deploy_file
    from anyshape.report.formats import findings_as_plain

    given = None if model is None else _given_model(model, file)
    with ProgressLine(quiet=quiet) as progress:
        result = deploy_file(
            file,
            to,
            output,
            at=[_sizes_of(text, "--at") for text in at],
            max_sizes={name: size for text in largest for name, size in _sizes_of(text, "--max").items()},
            profiles=[read_ranges(text) for text in profile],
            model=given,
            ort_web=ort_web,
            progress=progress,
        )
    if not as_json:
        return Outcome(str(result))
    about = {"target": result.target, "folder": str(result.folder), "files": list(result.files)}
    return Outcome({**about, **result.facts, "findings": findings_as_plain(result.findings)})


def _given_model(spelled: str, file: Path) -> Any:
    from anyshape.deploying.deploy_file import GivenModel
    from anyshape.sources import load_part

    loaded = load_part(spelled, file)
    return GivenModel(
        model=loaded.model, inputs=loaded.inputs, dynamic=loaded.dynamic, values=loaded.values, spelled=spelled
    )


def _sizes_of(text: str, option: str) -> dict[str, int]:
    return read_sizes(text, f"{option} has {{part!r}}, which is no size.", f"{option} batch=8,seq=128")


def read_ranges(text: str) -> dict[str, tuple[int, int]]:
    """`past=0..511,seq=1`."""
    found = {}
    for part in text.split(","):
        name, _equals, ends = part.partition("=")
        low, dots, high = ends.partition("..")
        if not low.strip().isdigit() or (dots and not high.strip().isdigit()):
            raise UsageError(_no_size("--profile", part, "past=0..511,seq=1"))
        found[name.strip()] = (int(low), int(high) if dots else int(low))
    return found


def _no_size(option: str, part: str, example: str) -> Finding:
    return Finding(
        code="AS036", name="argument", what=f"{option} has {part!r}, which is no size.", fix=f"{option} {example}"
    )
