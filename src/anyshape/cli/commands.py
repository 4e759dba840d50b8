"""The four commands. Each reads its arguments, calls the API, and returns what is printed and the exit status."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli.arguments import parse_seconds, parse_sizes
from anyshape.cli.output import Outcome, ProgressLine, Verbose, show_details
from anyshape.findings import Finding

__is_entrance__ = True

Model = Annotated[
    str, typer.Argument(help="FILE.py, or FILE.py:NAME for NAME() and NAME_inputs().", show_default=False)
]
Where = Annotated[list[str], typer.Option("--where", "-w", help="A rule: '1 <= batch <= 64'. May be given often.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Seed = Annotated[int, typer.Option(help="Of the random inputs and sizes.")]
Budget = Annotated[str, typer.Option(help="Estimated time of all comparisons, such as 60s or 5m; telling sizes first.")]
Rtol = Annotated[float | None, typer.Option(help="Relative tolerance in place of the measured noise floor.")]
Values = Annotated[
    str | None, typer.Option(help="'given': compare on the values of inputs() alone, without edge values.")
]
Report = Annotated[
    Path | None,
    typer.Option(help="Write the result, or the refusal, as one HTML page: out.html.", show_default=False),
]
Atol = Annotated[float | None, typer.Option(help="Absolute tolerance in place of the measured noise floor.")]


def export(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.", show_default=False)],
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
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> Outcome:
    """Convert a model: right at every size of its domain, or nothing is written.

    model.py:

        def model(): return MyModule()

        def inputs(batch=3, seq=5): return dict(x=torch.randn(batch, seq, 64), mask=torch.ones(batch, seq))

        where = ["1 <= batch <= 64"]

    Then:  anyshape export model.py -o m.onnx
    """
    import anyshape
    from anyshape.cli.arguments import load_model_file
    from anyshape.cli.reports import check_report, command_line
    from anyshape.contract.to_json import contract_as_plain
    from anyshape.exporting.report_files import PageReporter, write_refusal
    from anyshape.report.github import tell_github
    from anyshape.report.plain import export_as_plain
    from anyshape.report.text import describe_attempts, describe_export, describe_ladder, say_evidence
    from anyshape.saving import check_writable, write_atomically

    show_details(verbose)
    file = load_model_file(model)
    if write_diff is not None:
        check_writable(write_diff)
    check_report(report)
    try:
        with ProgressLine(quiet=quiet) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", anyshape.NarrowedWarning)  # the findings are printed below
            result = anyshape.export(
                file.module,
                file.inputs,
                output,
                dynamic=file.dynamic,
                where=[*file.where, *where],
                input_names=file.input_names,
                output_names=file.output_names,
                opset=opset,
                enforce=enforce,  # type: ignore[arg-type]
                enforce_values=enforce_values,
                target=target,  # type: ignore[arg-type]
                strip_source=strip_source,
                force=force,
                budget=None if budget is None else parse_seconds(budget),
                verify=verify,  # type: ignore[arg-type]
                time_limit=parse_seconds(time_limit, "--time-limit"),
                rtol=rtol,
                atol=atol,
                seed=seed,
                strategy=strategy,
                accept_narrower=accept_narrower,
                values=values or file.values,  # type: ignore[arg-type]
                thorough=thorough,
                state=state,  # type: ignore[arg-type]
                random=random,  # type: ignore[arg-type]
                repair=repair or write_diff is not None,
                progress=progress,
            )
    except anyshape.PromiseBroken as broken:
        if report is not None:
            write_refusal(broken, report, command=command_line())
        is_told = verbose and not as_json and broken.attempts
        return Outcome("\n".join(describe_attempts(broken.attempts)) if is_told else None, error=broken)
    if write_diff is not None and result.repair is not None:
        diff = result.repair.diff.encode()
        write_atomically(write_diff, lambda stream: stream.write(diff))
    elif write_diff is not None:
        typer.echo(f"No edit was needed: {write_diff} is not written.", err=True)
    if report is not None:
        PageReporter().write(result, report, command=command_line())
    tell_github(f"export {model}", result.findings, os.environ, sys.stderr, say_evidence(result.contract.tested))
    status = 0 if result.is_kept else 1
    if as_json:
        return Outcome(export_as_plain(result, contract_as_plain(result.contract)), status)
    ladder = f"\n{describe_ladder(result)}" if verbose else ""
    return Outcome(describe_export(result) + ladder, status)


def check(
    file: Annotated[Path, typer.Argument(help="An ONNX file of any exporter.", show_default=False)],
    model: Annotated[str, typer.Option("--model", "-m", help="FILE.py, as for export.", show_default=False)],
    where: Where = [],  # noqa: B006
    sizes: Annotated[str, typer.Option(help="Compare at these sizes alone: batch=1,seq=7.")] = "",
    sign: Annotated[
        bool, typer.Option("--sign", help="Renew the contract of a file that was changed, if it compares equal.")
    ] = False,
    provider: Annotated[
        list[str], typer.Option(help="Of onnxruntime: CUDAExecutionProvider. May be given often.")
    ] = [],  # noqa: B006
    budget: Budget = "60s",
    time_limit: Annotated[str, typer.Option(help="Real time after which comparing ends with an error.")] = "5m",
    rtol: Rtol = None,
    atol: Atol = None,
    seed: Seed = 0,
    values: Values = None,
    report: Report = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> Outcome:
    """Compare a file with its model, at sizes other than the example's.

    anyshape check m.onnx --model model.py

    anyshape check m.onnx --model model.py --sizes batch=1,seq=7

    anyshape check quantized.onnx --model model.py --rtol 0.02 --sign
    """
    from anyshape.checking.compare_file import check_file, compare_file
    from anyshape.cli.arguments import load_model_file
    from anyshape.cli.reports import check_report, write_check
    from anyshape.inputs import Declared, declare
    from anyshape.intercept.turns import exporting
    from anyshape.records.verdict import Verdict
    from anyshape.report.github import tell_github
    from anyshape.report.plain import check_as_plain
    from anyshape.report.text import describe_check
    from anyshape.runtime.session import check_providers
    from anyshape.verify import VerifyOptions

    show_details(verbose)
    check_report(report)
    loaded = load_model_file(model)
    options = VerifyOptions(
        rtol=rtol,
        atol=atol,
        budget_s=parse_seconds(budget),
        clock_s=parse_seconds(time_limit, "--time-limit"),
        seed=seed,
        providers=check_providers(provider or None),
    )
    with ProgressLine(quiet=quiet) as progress, exporting(loaded.module, progress) as module:
        declared = declare(
            module,
            loaded.inputs,
            dynamic=loaded.dynamic,
            where=[*loaded.where, *where],
            values=values or loaded.values,
        )
        at = parse_sizes(sizes, declared)

        def compare(over: Declared) -> tuple[Verdict, tuple[Finding, ...]]:
            return compare_file(file, module, over, options, at, progress, model)

        checked = check_file(file, declared, at, compare, sign=sign)
    if report is not None:
        write_check(report, file, checked)
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
