"""`anyshape export`: a source -> an ONNX file, or a folder of them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyshape.cli import (
    AsJson,
    Atol,
    ConfigOnly,
    OneFile,
    Outcome,
    Overwrite,
    ProgressLine,
    Quiet,
    RayForComparisons,
    Report,
    Rtol,
    Seed,
    SourceText,
    Task,
    TrustRemoteCode,
    Values,
    Verbose,
    Where,
    parse_seconds,
)

if TYPE_CHECKING:
    from anyshape.records.export import Export
    from anyshape.sources import SourceExport

__is_entrance__ = True


def export(
    source: SourceText,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The ONNX file to write, or the folder.", show_default=False)
    ],
    where: Where = [],  # noqa: B006
    opset: Annotated[int, typer.Option(help="ONNX opset of the file.")] = 18,
    force: Annotated[
        bool, typer.Option(help="Write the file though its promise is broken; its contract says so.")
    ] = False,
    enforce: Annotated[
        str, typer.Option(help="'graph': the file itself refuses sizes outside its contract; 'load': not.")
    ] = "graph",
    enforce_values: Annotated[
        bool,
        typer.Option("--enforce-values", help="The file itself refuses values outside the bounds in its contract."),
    ] = False,
    target: Annotated[
        str | None, typer.Option(help="'onnxruntime': with fused operators that no other runtime has.")
    ] = None,
    strip_source: Annotated[
        bool, typer.Option("--strip-source", help="Leave lines of your code out of the file and the result.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Estimated time of all comparisons, such as 60s or 5m. Default: in proportion to the export."
        ),
    ] = None,
    verify: Annotated[
        str | None, typer.Option(help="'quick': compare at eight sizes; 'none': at none, the status is 1.")
    ] = None,
    rtol: Rtol = None,
    atol: Atol = None,
    seed: Seed = 0,
    values: Values = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="Only this rung of the ladder: symbolic, generalized, rerolled, decided or legacy."),
    ] = None,
    time_limit: Annotated[str, typer.Option(help="Time for the whole export, such as 60s or 10m.")] = "10m",
    accept_narrower: Annotated[
        bool, typer.Option(help="A smaller domain will do; each narrowing is a warning.")
    ] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Compare every size and every declared end, however long that takes.")
    ] = False,
    state: Annotated[
        str | None,
        typer.Option(
            help="'outputs': what the model keeps between calls is an input and an output; 'frozen': not kept."
        ),
    ] = None,
    random: Annotated[
        str | None, typer.Option(help="'runtime': the file draws random numbers as the model does.")
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Edit sizes that the source has as numbers, in memory, if one reading fits."),
    ] = False,
    write_diff: Annotated[
        Path | None,
        typer.Option("--write-diff", help="Write the edits of --repair as a diff for `git apply`.", show_default=False),
    ] = None,
    report: Report = None,
    overwrite: Overwrite = False,
    task: Task = None,
    config_only: ConfigOnly = False,
    one_file: OneFile = False,
    trust_remote_code: TrustRemoteCode = False,
    ray: RayForComparisons = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> Outcome:
    """Convert a model: right at every size of its domain, or nothing is written.

    model.py:

    \b
        def model():
            return MyModule()
        def inputs(batch=3, seq=5):
            return dict(x=torch.randn(batch, seq, 64), mask=torch.ones(batch, seq))
        where = ["1 <= batch <= 64"]

    Then:  anyshape export model.py -o m.onnx

    A model of transformers or timm needs no file; out is a folder that optimum.onnxruntime loads:

    \b
        anyshape export hf:DIR_OR_ID -o out
        anyshape export timm:resnet18 -o resnet18.onnx
    """
    import anyshape
    from anyshape import sources
    from anyshape.cli.late_options import ShareCall, check_report, exporting_on_ray, write_result, write_results
    from anyshape.report import tell_github
    from anyshape.report.text import describe_attempts, say_evidence

    check_report(report)
    try:
        with ProgressLine(quiet=quiet) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", anyshape.NarrowedWarning)  # the findings are printed below
            progress(f"loading {source}", 0, 0)
            result = sources.export(
                source,
                output,
                where=where,
                task=task,
                config_only=config_only,
                one_file=one_file,
                trust_remote_code=trust_remote_code,
                opset=opset,
                enforce=enforce,
                enforce_values=enforce_values,
                target=target,
                strip_source=strip_source,
                force=force,
                budget=None if budget is None else parse_seconds(budget),
                verify=verify,
                time_limit=parse_seconds(time_limit, "--time-limit"),
                rtol=rtol,
                atol=atol,
                seed=seed,
                strategy=strategy,
                accept_narrower=accept_narrower,
                values=values,
                thorough=thorough,
                state=state,
                random=random,
                repair=repair or write_diff is not None,
                progress=progress,
                comparing=None
                if ray is None
                else exporting_on_ray(
                    ray,
                    ShareCall(
                        file="",
                        model=source,
                        where=tuple(where),
                        values=values,
                        source=sources.SourceOptions(
                            task=task, config_only=config_only, one_file=one_file, trust_remote_code=trust_remote_code
                        ),
                        over_contract=True,
                    ),
                    progress,
                ),
            )
    except anyshape.PromiseBroken as broken:
        write_result(report, broken, quiet=quiet)
        is_told = verbose and not as_json and broken.attempts
        return Outcome("\n".join(describe_attempts(broken.attempts)) if is_told else None, error=broken)
    if write_diff is not None:
        _write_diffs(write_diff, result.files)
    write_results(report, result.files, quiet=quiet)
    for each in result.files:
        tell_github(f"export {source}", each.findings, os.environ, sys.stderr, say_evidence(each.contract.tested))
    shown = _as_plain(result) if as_json else _described(result, verbose)
    return Outcome(shown, 0 if result.is_kept else 1)


def _write_diffs(path: Path, files: Sequence[Export]) -> None:
    from anyshape.saving import write_atomically
    from anyshape.saving.outputs import DIFF

    diffs = dict.fromkeys(each.repair.diff for each in files if each.repair is not None)
    if diffs:
        write_atomically(path, lambda stream: stream.write("".join(diffs).encode()), DIFF)
    else:
        typer.echo(f"No edit was needed: {path} is not written.", err=True)


def _as_plain(result: SourceExport) -> dict[str, Any]:
    """One export as it is; of several, a list under `files`."""
    from anyshape.records.contract import contract_as_plain
    from anyshape.report import export_as_plain, findings_as_plain

    files = [export_as_plain(each, contract_as_plain(each.contract)) for each in result.files]
    if len(files) == 1:
        return files[0]
    found = findings_as_plain(result.findings)
    return {"kept": result.is_kept, "path": str(result.path), "files": files, "findings": found}


def _described(result: SourceExport, verbose: int) -> str:
    from anyshape.report.text import describe_export, describe_ladder

    texts = [describe_export(each) + (f"\n{describe_ladder(each)}" if verbose else "") for each in result.files]
    return "\n".join(texts)
