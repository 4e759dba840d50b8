"""`anyshape check`, `inspect` and `explain`: each reads its arguments, calls the API, and returns what is printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli.arguments import load_part_showing, parse_seconds, parse_sizes
from anyshape.cli.options import (
    AsJson,
    Atol,
    Budget,
    ConfigOnly,
    Measure,
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
from anyshape.cli.output import Outcome, ProgressLine, Verbose, show_details
from anyshape.cli.ray_address import RayForComparisons
from anyshape.findings import Finding

__is_entrance__ = True


def check(
    file: Annotated[Path, typer.Argument(help="An ONNX file of any exporter.", show_default=False)],
    model: ModelSource,
    where: Where = [],  # noqa: B006
    sizes: Annotated[str, typer.Option(help="Compare at these sizes alone: batch=1,seq=7.")] = "",
    sign: Annotated[
        bool, typer.Option("--sign", help="Renew the contract of a file that was changed, if it compares equal.")
    ] = False,
    provider: Provider = [],  # noqa: B006
    runtime: Annotated[str, typer.Option(help="What runs the file: onnxruntime or openvino.")] = "onnxruntime",
    budget: Budget = "60s",
    time_limit: Annotated[str, typer.Option(help="Real time after which comparing ends with an error.")] = "5m",
    rtol: Rtol = None,
    atol: Atol = None,
    seed: Seed = 0,
    values: Values = None,
    report: Report = None,
    measure: Measure = False,
    task: Task = None,
    config_only: ConfigOnly = False,
    trust_remote_code: TrustRemoteCode = False,
    ray: RayForComparisons = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> Outcome:
    """Compare a file with its model, at sizes other than the example's.

    anyshape check m.onnx --model model.py

    anyshape check m.onnx --model model.py --sizes batch=1,seq=7

    anyshape check quantized.onnx --model model.py --rtol 0.02 --sign

    anyshape check m.onnx --model model.py --runtime openvino
    """
    from anyshape.checking.compare_file import check_engine, check_file, compare_file
    from anyshape.cli.ray_comparisons import ShareCall, comparing_on_ray
    from anyshape.cli.reports import check_report, measure_file, write_check
    from anyshape.inputs import Declared, declare
    from anyshape.intercept.turns import exporting
    from anyshape.records.verdict import Verdict
    from anyshape.report.github import tell_github
    from anyshape.report.plain import check_as_plain
    from anyshape.report.text import describe_check
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions, verify

    show_details(verbose)
    check_report(report, measure=measure)
    on = check_engine(file, runtime, provider or None, sign=sign)
    source_options = SourceOptions(task=task, config_only=config_only, trust_remote_code=trust_remote_code)
    loaded = load_part_showing(model, file, source_options, quiet=quiet)
    options = VerifyOptions(
        rtol=rtol,
        atol=atol,
        budget_s=parse_seconds(budget),
        clock_s=parse_seconds(time_limit, "--time-limit"),
        seed=seed,
        providers=on,
        runtime=runtime,
    )
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.model, progress) as module:
        declared = declare(
            module,
            loaded.inputs,
            dynamic=loaded.dynamic,
            where=[*loaded.where, *where],
            values=values or loaded.values,
        )
        at = parse_sizes(sizes, declared)

        def compare(over: Declared) -> tuple[Verdict, tuple[Finding, ...]]:
            call = ShareCall(
                file=str(file),
                model=model,
                where=tuple(where),
                values=values,
                source=source_options,
                options=options,
                over_contract=sign,
            )
            run = verify if ray is None or at is not None else comparing_on_ray(ray, call, progress)
            return compare_file(file, module, over, options, at, progress, model, run=run)

        checked = check_file(file, declared, at, compare, sign=sign, runtime=runtime)
        benched = measure_file(file, module, declared, seed, progress) if measure else None
    write_check(report, file, checked, declared, benched, model=model, seed=seed, quiet=quiet)
    tell_github(
        f"check {file}", checked.findings, os.environ, sys.stderr, f"{len(checked.verdict.tried)} sizes compared"
    )
    shown = check_as_plain if as_json else describe_check
    return Outcome(shown(checked.verdict, checked.findings, str(file), checked.signed), 1 if checked.errors else 0)


def inspect(
    file: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    as_json: AsJson = False,
) -> Outcome:
    """Show what a file promises: its dims, rules, inputs, outputs, and what was tested.

    anyshape inspect m.onnx
    """
    from anyshape.contract.digest import find_change
    from anyshape.contract.metadata import read_contract
    from anyshape.contract.to_json import contract_as_plain
    from anyshape.report.plain import findings_as_plain
    from anyshape.report.text import describe_inspection

    contract, is_own = read_contract(file)
    change = find_change(file, contract)
    if as_json:
        found = findings_as_plain([change] if change else [])
        about = {"path": str(file), "has_contract": is_own, "changed": change is not None, "findings": found}
        return Outcome({**about, "contract": contract_as_plain(contract)})
    return Outcome(describe_inspection(contract, str(file), is_own, change))


def explain(
    code: Annotated[str, typer.Argument(help="A finding's code or name: AS102, size-baked-in.", show_default=False)],
) -> Outcome:
    """Explain a finding: a model that triggers it, the message, and the fixed model.

    anyshape explain AS102

    anyshape explain size-baked-in
    """
    from anyshape.findings.pages import read_page

    return Outcome(read_page(code))
