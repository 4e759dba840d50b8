"""`anyshape axes`, `check`, `inspect` and `explain`: each reads its arguments, calls the API, and returns what is printed.

The pages are docs/errors of the project; a wheel carries them as anyshape/pages.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli import (
    AsJson,
    Atol,
    Budget,
    ConfigOnly,
    Measure,
    ModelSource,
    Outcome,
    Overwrite,
    ProgressLine,
    Provider,
    Quiet,
    RayForComparisons,
    Report,
    Rtol,
    Seed,
    Task,
    TrustRemoteCode,
    Values,
    Verbose,
    Where,
    load_part_showing,
    parse_seconds,
    parse_sizes,
)
from anyshape.findings import Finding, UsageError
from anyshape.findings.finding import PACKAGE_FOLDER

__is_entrance__ = True


def axes(
    model: Annotated[
        str, typer.Argument(help="FILE.py, or FILE.py:NAME for NAME() and NAME_inputs().", show_default=False)
    ],
    where: Annotated[
        list[str], typer.Option("--where", "-w", help="A rule, as for export. May be given several times.")
    ] = [],  # noqa: B006
    every_axis: Annotated[
        bool, typer.Option("--every-axis", help="Try each axis of the example, whatever the file declares.")
    ] = False,
    time_limit: Annotated[str, typer.Option(help="Time for the whole search, such as 60s or 5m.")] = "60s",
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Show which axes of which inputs can vary, and under which rules. Nothing is written.

    The model is called at other sizes. With an example and no declaration each axis is tried, and what it found is printed as
    text to paste; with inputs(batch=3, …) the axes are the declared ones, and the rules are those that an export would learn.

    anyshape axes model.py

    anyshape axes model.py --every-axis

    The status is 1 where an export would be refused, or where no rule describes what the model refuses.
    """
    import anyshape
    from anyshape.sources import resolve

    with ProgressLine(quiet=quiet) as progress:
        progress(f"loading {model}", 0, 0)
        found = {
            part.name: anyshape.axes(
                part.model,
                part.inputs,
                dynamic=part.dynamic,
                where=[*part.where, *where],
                values=part.values,
                every_axis=every_axis,
                time_limit=parse_seconds(time_limit, "--time-limit"),
                seed=seed,
                progress=progress,
            )
            for part in resolve(model).parts
        }
    status = 0 if all(each.is_kept for each in found.values()) else 1
    if len(found) == 1:
        only = next(iter(found.values()))
        return Outcome(only.as_plain() if as_json else str(only), status)
    if as_json:
        return Outcome({"models": {name: each.as_plain() for name, each in found.items()}}, status)
    return Outcome("\n\n".join(f"{name}\n{each}" for name, each in found.items()), status)


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
    overwrite: Overwrite = False,
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
    from anyshape.cli.late_options import ShareCall, check_report, comparing_on_ray, measure_file, write_check
    from anyshape.inputs import Declared, declare
    from anyshape.intercept.turns import exporting
    from anyshape.records.verdict import Verdict
    from anyshape.report import check_as_plain, tell_github
    from anyshape.report.text import describe_check
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions, verify

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
            module, loaded.inputs, dynamic=loaded.dynamic, where=[*loaded.where, *where], values=values or loaded.values
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
    file: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)], as_json: AsJson = False
) -> Outcome:
    """Show what a file promises: its dims, rules, inputs, outputs, and what was tested.

    anyshape inspect m.onnx
    """
    from anyshape.contract import read_contract
    from anyshape.contract.digest import find_change
    from anyshape.records.contract import contract_as_plain
    from anyshape.report import findings_as_plain
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

    return Outcome(read_page(code))


def read_page(wanted: str) -> str:
    """The page of a code (`AS102`) or of a name (`size-baked-in`); all pages where several codes share the name.

    Raises UsageError for what is neither, with the code or name that was probably meant.
    """
    pages = {page.stem: page.read_text(encoding="utf-8") for page in sorted(_folder().glob("AS*.md"))}
    code = wanted.strip().upper()
    if code in pages:
        return pages[code]
    name = "-".join(wanted.strip().lower().replace("_", " ").split())
    named = [text for text in pages.values() if _name(text) == name]
    if named:
        return "\n\n".join(text.rstrip() for text in named) + "\n"
    raise UsageError(
        Finding(
            code="AS036",
            name="argument",
            what=f"there is no finding {wanted!r}.",
            fix=f"did you mean {_nearest(code, name, pages)}?",
        )
    )


def _name(page: str) -> str:
    """`# AS102 size-baked-in` -> `size-baked-in`."""
    return page.partition("\n")[0].split()[-1]


def _nearest(code: str, name: str, pages: Mapping[str, str]) -> str:
    """The code whose number is nearest; without digits, the name that is spelt most alike, with its code."""
    digits = "".join(char for char in code if char.isdecimal())[:9]
    if digits:
        return min(pages, key=lambda each: abs(int(each[2:]) - int(digits)))
    names = {_name(text): each for each, text in sorted(pages.items(), reverse=True)}
    parts = [each for each in names if len(name) > 2 and name in each]
    near = parts[0] if len(parts) == 1 else difflib.get_close_matches(name, list(names), n=1, cutoff=0)[0]
    return f"{names[near]} {near}"


def _folder() -> Path:
    shipped = PACKAGE_FOLDER / "pages"
    return shipped if shipped.is_dir() else PACKAGE_FOLDER.parent.parent / "docs" / "errors"
