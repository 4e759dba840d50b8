"""Commands on files that exist already: `anyshape compare`, `bench`, `fix`, `freeze` and `deploy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli import (
    AsJson,
    Atol,
    ConfigOnly,
    ModelSource,
    Outcome,
    Overwrite,
    ProgressLine,
    Provider,
    Quiet,
    Report,
    Rtol,
    Seed,
    Task,
    TrustRemoteCode,
    Values,
    Where,
    load_part_showing,
    parse_seconds,
    parse_sizes,
    read_ranges,
    read_sizes,
    sizes_of,
)

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
    overwrite: Overwrite = False,
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
    from anyshape.checking import BenchOptions
    from anyshape.checking.two_files import ComparingOptions, compare_files
    from anyshape.cli.late_options import check_report, write_comparison
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.runtime.session import check_providers
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions

    check_report(report)
    on, spent = check_providers(provider or None), parse_seconds(seconds, "--seconds")
    source_options = SourceOptions(task=task, config_only=config_only, trust_remote_code=trust_remote_code)
    loaded = load_part_showing(model, file, source_options, quiet=quiet)
    budget_s, clock_s = parse_seconds(budget), parse_seconds(time_limit, "--time-limit")
    verify = VerifyOptions(rtol=rtol, atol=atol, budget_s=budget_s, clock_s=clock_s, seed=seed, providers=on)
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.model, progress) as module:
        used, rules = values or loaded.values, [*loaded.where, *where]
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=used)
        at = parse_sizes(sizes, declared)
        bench = BenchOptions(
            sizes=[at] if at else (), count=measure, providers=on, threads=threads, seconds=spent, seed=seed
        )
        options = ComparingOptions(verify=verify, bench=bench if measure else None, sizes=at)
        compared = compare_files((file, other), module, declared, options, progress, model)
    write_comparison(report, compared, declared, model=model, seed=seed, quiet=quiet)
    return Outcome(compared.as_plain() if as_json else str(compared), 0 if compared.is_kept else 1)


def bench(
    file: Annotated[Path, typer.Argument(help="An ONNX file of any exporter.", show_default=False)],
    model: ModelSource,
    where: Annotated[
        list[str], typer.Option("--where", "-w", help="A rule, as for export. May be given several times.")
    ] = [],  # noqa: B006
    sizes: Annotated[list[str], typer.Option(help="Measure at batch=1,seq=7. May be given several times.")] = [],  # noqa: B006
    count: Annotated[int, typer.Option(help="How many sizes are chosen where none are given.")] = 5,
    provider: Provider = [],  # noqa: B006
    threads: Annotated[int, typer.Option(help="Threads of file and model; 0 leaves it to the libraries.")] = 1,
    seconds: Annotated[str, typer.Option(help="Time of the calls at one size, such as 1s.")] = "1s",
    plot: Annotated[Path | None, typer.Option(help="Write a chart: FILE.svg, or FILE.html with memory, too.")] = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    task: Task = None,
    config_only: ConfigOnly = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Measure latency and memory of a file over sizes, beside its model.

    anyshape bench m.onnx --model model.py

    anyshape bench m.onnx --model model.py --sizes batch=1,seq=7 --sizes batch=8,seq=128 --plot m.html
    """
    from anyshape.checking import BenchOptions, bench_file
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.report.benches import bench_as_plain, describe_bench, plot_bench
    from anyshape.runtime.session import check_providers
    from anyshape.saving import write_atomically
    from anyshape.saving.outputs import CHART
    from anyshape.sources import SourceOptions

    on, spent = check_providers(provider or None), parse_seconds(seconds, "--seconds")
    source_options = SourceOptions(task=task, config_only=config_only, trust_remote_code=trust_remote_code)
    loaded = load_part_showing(model, file, source_options, quiet=quiet)
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.model, progress) as module:
        rules = [*loaded.where, *where]
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=loaded.values)
        chosen = [at for text in sizes if (at := parse_sizes(text, declared)) is not None]
        options = BenchOptions(sizes=chosen, count=count, providers=on, threads=threads, seconds=spent, seed=seed)
        benched = bench_file(file, module, declared, options, progress)
    if plot is not None:
        chart = plot_bench(benched, as_page=plot.suffix == ".html").encode()
        write_atomically(plot, lambda stream: stream.write(chart), CHART)
    status = 1 if any(row.error for row in benched.rows) else 0
    return Outcome(bench_as_plain(benched) if as_json else describe_bench(benched), status)


Output = Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.", show_default=False)]


def fix(
    file: Annotated[Path, typer.Argument(help="A static ONNX file of any exporter.", show_default=False)],
    output: Output,
    dynamic: Annotated[
        list[str],
        typer.Option(
            "--dynamic",
            "-d",
            help="Words for the axes of an input: 'input: batch 3 h w'. May be given several times, for outputs, too.",
            show_default=False,
        ),
    ],
    read: Annotated[
        list[str], typer.Option(help="Answers a question (AS502): 'NODE: [batch, 8*seq]'. May be given several times.")
    ] = [],  # noqa: B006
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="FILE.py or another source, as for export: compare with the model, too."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Make a static file dynamic: right at other sizes, or the node in the way.

    Every constant that holds a size is replaced by an expression of the inputs' shapes, if only one fits.

    anyshape fix static.onnx --dynamic "input: batch 3 224 224" -o dynamic.onnx

    anyshape fix static.onnx -d "ids: batch seq" -d "mask: batch seq" -o dynamic.onnx

    A word for each axis: a name for one that varies, its number or _ for one that stays. What the file does not show (two
    dims of one size, a size in a formula) is asked by AS502: answer with --read, with words for more inputs and outputs,
    or export the static file at sizes that differ.
    """
    from anyshape import files

    loaded = None if model is None else load_part_showing(model, file, quiet=quiet)
    with ProgressLine(quiet=quiet) as progress:
        progress(f"repairing {file.name}", 0, 0)
        if loaded is None:
            result = files.fix(file, output, dynamic, read=read)
        else:
            compared = {"model": loaded.model, "inputs": loaded.inputs, "where": loaded.where}
            result = files.fix(file, output, dynamic, read=read, progress=progress, **compared)
    return Outcome({"path": str(result.path), **result.as_plain()} if as_json else str(result))


def freeze(
    file: Annotated[Path, typer.Argument(help="An ONNX file with dynamic dims.", show_default=False)],
    sizes: Annotated[list[str], typer.Argument(help="batch=1 seq=128", show_default=False)],
    output: Output,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Make dims of a file static, fold what follows, and renew its contract.

    anyshape freeze m.onnx batch=1 -o one.onnx
    """
    from anyshape import files
    from anyshape.records.contract import contract_as_plain

    at = read_sizes(",".join(sizes), "{part!r} is no size.", "anyshape freeze m.onnx batch=1")
    with ProgressLine(quiet=quiet) as progress:
        progress(f"freezing {file.name}", 0, 0)
        result = files.freeze(file, output, at)
    if not as_json:
        return Outcome(str(result))
    about = {"path": str(result.path), "folded": result.folded, "has_contract": result.has_contract}
    return Outcome({**about, "contract": contract_as_plain(result.contract)})


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
    """Write what a server needs to run an ONNX file, from its contract alone.

    anyshape deploy m.onnx --to tensorrt -o engine --at batch=8,seq=128 --max seq=512

    anyshape deploy m.onnx --to triton -o repository

    anyshape deploy m.onnx --to openvino -o ir --model model.py

    anyshape deploy m.onnx --to web -o page
    """
    from anyshape.deploying import GivenModel
    from anyshape.deploying import deploy as deploy_file
    from anyshape.report import findings_as_plain

    given = None
    if model is not None:
        from anyshape.sources import load_part

        part = load_part(model, file)
        given = GivenModel(
            model=part.model, inputs=part.inputs, dynamic=part.dynamic, values=part.values, spelled=model
        )
    with ProgressLine(quiet=quiet) as progress:
        result = deploy_file(
            file,
            to,
            output,
            at=[sizes_of(text, "--at") for text in at],
            max_sizes={name: size for text in largest for name, size in sizes_of(text, "--max").items()},
            profiles=[read_ranges(text) for text in profile],
            model=given,
            ort_web=ort_web,
            progress=progress,
        )
    if not as_json:
        return Outcome(str(result))
    about = {"target": result.target, "folder": str(result.folder), "files": list(result.files)}
    return Outcome({**about, **result.facts, "findings": findings_as_plain(result.findings)})
