"""`anyshape bench`: latency and memory of a file over sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli.arguments import parse_seconds, parse_sizes
from anyshape.cli.output import Outcome, ProgressLine


def bench(
    file: Annotated[Path, typer.Argument(help="An ONNX file of any exporter.", show_default=False)],
    model: Annotated[str, typer.Option("--model", "-m", help="FILE.py, as for export.", show_default=False)],
    where: Annotated[list[str], typer.Option("--where", "-w", help="A rule, as for export. May be given often.")] = [],  # noqa: B006
    sizes: Annotated[list[str], typer.Option(help="Measure at batch=1,seq=7. May be given often.")] = [],  # noqa: B006
    count: Annotated[int, typer.Option(help="How many sizes are chosen where none are given.")] = 5,
    provider: Annotated[
        list[str], typer.Option(help="Of onnxruntime: CUDAExecutionProvider. May be given often.")
    ] = [],  # noqa: B006
    threads: Annotated[int, typer.Option(help="Of file and model; 0 leaves it to the libraries.")] = 1,
    seconds: Annotated[str, typer.Option(help="Time of the calls at one size, such as 1s.")] = "1s",
    plot: Annotated[Path | None, typer.Option(help="Write a chart: FILE.svg, or FILE.html with memory, too.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random inputs and sizes.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> Outcome:
    """Measure latency and memory of a file over sizes, beside its model.

    anyshape bench m.onnx --model model.py

    anyshape bench m.onnx --model model.py --sizes batch=1,seq=7 --sizes batch=8,seq=128 --plot m.html
    """
    from anyshape.checking.benching import BenchOptions, bench_file
    from anyshape.cli.arguments import load_model_file
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.report.benches import bench_as_plain, describe_bench, plot_bench
    from anyshape.runtime.providers import check_providers
    from anyshape.saving import write_atomically

    providers, spent = check_providers(provider or None), parse_seconds(seconds, "--seconds")
    loaded = load_model_file(model)
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.module, progress) as module:
        rules = [*loaded.where, *where]
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=loaded.values)
        chosen = [at for text in sizes if (at := parse_sizes(text, declared)) is not None]
        options = BenchOptions(
            sizes=chosen, count=count, providers=providers, threads=threads, seconds=spent, seed=seed
        )
        benched = bench_file(file, module, declared, options, progress)
    if plot is not None:
        chart = plot_bench(benched, as_page=plot.suffix == ".html").encode()
        write_atomically(plot, lambda stream: stream.write(chart))
    status = 1 if any(row.error for row in benched.rows) else 0
    return Outcome(bench_as_plain(benched) if as_json else describe_bench(benched), status)
