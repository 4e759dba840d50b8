"""`anyshape compare`: two files of one model over the same sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli.arguments import load_part_showing, parse_seconds, parse_sizes
from anyshape.cli.options import (
    AsJson,
    Atol,
    ConfigOnly,
    ModelSource,
    Provider,
    Quiet,
    Report,
    Rtol,
    Seed,
    Task,
    TrustRemoteCode,
    Values,
    Where,
)
from anyshape.cli.output import Outcome, ProgressLine

__is_entrance__ = True


def compare(
    file: Annotated[Path, typer.Argument(help="An ONNX file of any exporter: A.", show_default=False)],
    other: Annotated[Path, typer.Argument(help="Another file of the same model: B.", show_default=False)],
    model: ModelSource,
    where: Where = [],  # noqa: B006
    sizes: Annotated[str, typer.Option(help="Compare and measure at these sizes alone: batch=1,seq=7.")] = "",
    rtol: Rtol = None,
    atol: Atol = None,
    measure: Annotated[int, typer.Option(help="At how many sizes time and memory are measured; 0: at none.")] = 4,
    seconds: Annotated[str, typer.Option(help="Time of the calls at one size, such as 1s.")] = "0.5s",
    threads: Annotated[
        int, typer.Option(help="Threads of files and model, when measured; 0 leaves it to the libraries.")
    ] = 1,
    provider: Provider = [],  # noqa: B006
    budget: Annotated[str, typer.Option(help="Estimated time of all comparisons of one file.")] = "60s",
    time_limit: Annotated[str, typer.Option(help="Real time after which comparing one file ends.")] = "5m",
    seed: Seed = 0,
    values: Values = None,
    report: Report = None,
    task: Task = None,
    config_only: ConfigOnly = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Compare two files of one model over the same sizes: with the model, with each other, and what they cost.

    Before and after quantization, or ours and that of another exporter. The status is 0 if both agree with the model and with
    each other, else 1.

    anyshape compare ours.onnx theirs.onnx --model model.py

    anyshape compare ours.onnx theirs.onnx --model model.py --report compared.html

    anyshape compare m.onnx quantized.onnx --model model.py --rtol 0.02 --atol 0.02
    """
    from anyshape.checking.benching import BenchOptions
    from anyshape.checking.two_files import ComparingOptions, compare_files
    from anyshape.cli.reports import check_report, write_comparison
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.runtime.session import check_providers
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions

    check_report(report)
    on, spent = check_providers(provider or None), parse_seconds(seconds, "--seconds")
    source_options = SourceOptions(task=task, config_only=config_only, trust_remote_code=trust_remote_code)
    loaded = load_part_showing(model, file, source_options, quiet=quiet)
    verify = VerifyOptions(
        rtol=rtol,
        atol=atol,
        budget_s=parse_seconds(budget),
        clock_s=parse_seconds(time_limit, "--time-limit"),
        seed=seed,
        providers=on,
    )
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.model, progress) as module:
        rules = [*loaded.where, *where]
        used = values or loaded.values
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=used)
        at = parse_sizes(sizes, declared)
        bench = BenchOptions(
            sizes=[at] if at else (), count=measure, providers=on, threads=threads, seconds=spent, seed=seed
        )
        options = ComparingOptions(verify=verify, bench=bench if measure else None, sizes=at)
        compared = compare_files((file, other), module, declared, options, progress, model)
    write_comparison(report, compared, declared, model=model, seed=seed, quiet=quiet)
    return Outcome(compared.as_plain() if as_json else str(compared), 0 if compared.is_kept else 1)
