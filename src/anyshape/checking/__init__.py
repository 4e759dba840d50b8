"""Files that exist already: compared with their module, signed again, measured, made dynamic or static.

This file: one file of any exporter: `anyshape.check` compares it with its model, `bench` measures latency and memory over
its sizes.

declared -> sizes, from small to large -> [ file timed in a child, module timed here ] -> rows

Files, in the order in which data flows:

    contract_inputs  inputs made from a contract alone; does a runtime refuse sizes outside it?
    compare_file     a file beside its module; --sign
    two_files        two files of one model, and the page about them
    repairing        `anyshape fix`: a static file -> a dynamic one
    file_evidence    evidence that a repaired file is right
    freezing         `anyshape freeze`: dims -> numbers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyshape.checking.compare_file import Checked, check_engine, check_file, compare_file
from anyshape.checking.contract_inputs import AnswersOutside
from anyshape.contract import find_contract, match_file, open_model
from anyshape.contract.build import describe_run
from anyshape.contract.digest import FileChanged
from anyshape.domain import Sizes
from anyshape.explore import costing
from anyshape.exporting import write_page
from anyshape.exporting.context import Tell
from anyshape.findings import Finding, PromiseBroken, check_numbers, raises_for_caller, warn_caller
from anyshape.findings.arguments import read_path, read_sizes, read_threads
from anyshape.inputs import Declared, declare, flatten_outputs
from anyshape.intercept.turns import taking_turns
from anyshape.modules.callables import as_module
from anyshape.processes.isolated import in_own_process
from anyshape.records.contract import Contract
from anyshape.records.runs import Benched, BenchRow, Reportable, Reporter, Run
from anyshape.records.verdict import Verdict
from anyshape.report.page import render_summary
from anyshape.report.page.page_facts import PageFacts, facts_of_check
from anyshape.report.progress_line import shows_progress, telling
from anyshape.runtime.child import TimingRequest, time_calls
from anyshape.runtime.child_messages import RuntimeFailed
from anyshape.verify import Reference, VerifyOptions
from anyshape.verify.reference import Answer, CallInputs
from anyshape.verify.request import Cost, plan_sizes

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch

    Model = torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]

__is_entrance__ = True

Progress = Callable[[str, int, int], None]
_EAGER_CALLS = 3


@raises_for_caller
@shows_progress
@in_own_process()
@taking_turns(model_at=1)
def check(
    path: str | PathLike[str],
    model: Model,
    inputs: Any,
    *,
    dynamic: Any = None,
    where: Sequence[str] | str = (),
    names: Any = None,
    sizes: Mapping[str, int] | None = None,
    sign: bool = False,
    operators: Mapping[str, Callable[..., Any]] | None = None,
    providers: Sequence[str] | None = None,
    runtime: Literal["onnxruntime", "openvino"] = "onnxruntime",
    rtol: float | None = None,
    atol: float | None = None,
    budget: float = 60.0,
    time_limit: float = 300.0,
    seed: int = 0,
    values: Mapping[str, str] | Literal["given"] | None = None,
    progress: Progress | bool | None = None,
    isolate: bool | None = None,
) -> FileVerdict:
    """Compare an ONNX file of any exporter with the model over the domain; raise PromiseBroken where they differ.

    `sizes={"batch": 1, "seq": 7}` compares at those sizes alone. `sign=True` renews the contract of a file that was
    changed after it was verified (quantized, simplified) once it compares equal; without it such a file is a warning
    (FileChanged). `operators` and `providers` are as in `anyshape.load`, `values` as in `anyshape.export`. `runtime` is what
    runs the file: one that is not onnxruntime is also run outside the contract, and where it answers, that is a warning.
    The result is a verdict; its `report("out.html")`, like that of PromiseBroken, writes a page.
    """
    source = read_path("path", path)
    at = None if sizes is None else read_sizes("sizes", sizes)
    module = as_module(model)
    check_numbers(seed, budget=budget, time_limit=time_limit, rtol=rtol, atol=atol)
    rules = [where] if isinstance(where, str) else where
    declared = declare(module, inputs, dynamic=dynamic, where=rules, names=names, values=values)
    on = check_engine(source, runtime, providers, sign=sign)
    options = VerifyOptions(
        rtol=rtol, atol=atol, budget_s=budget, clock_s=time_limit, seed=seed, providers=on, runtime=runtime
    )

    def compare(over: Declared) -> tuple[Verdict, tuple[Finding, ...]]:
        return compare_file(source, module, over, options, at, telling(progress), operators=operators)

    checked = check_file(source, declared, at, compare, sign=sign, runtime=runtime)
    reporter = check_reporter(source, declared, type(module).__name__, seed)
    result = check_result(source, checked, reporter)
    if checked.errors:
        broken = PromiseBroken(*checked.errors)
        broken.write_report = partial(_write_page, reporter, result)
        raise broken
    if checked.change is not None:
        warn_caller(FileChanged(str(checked.change)))
    for answered in checked.outside:
        warn_caller(AnswersOutside(str(answered)))
    return result


@dataclass(frozen=True)
class CheckReporter:
    """The reporter of a check: what was declared, and the contract that the file had when it was checked."""

    run: Run
    contract: Contract | None

    def write(self, result: FileVerdict, path: Path, bench: Benched | None = None, *, command: str = "") -> None:
        """Write the page of a check. Raises UsageError where it cannot be written, or a package is missing."""
        write_page(self._facts(result, open_model(result.path), bench, command), path)

    def summarize(self, result: FileVerdict) -> str | None:
        """Verdict and contract as HTML."""
        return render_summary(self._facts(result))

    def _facts(
        self, result: FileVerdict, model: ir.Model | None = None, bench: Benched | None = None, command: str = ""
    ) -> PageFacts:
        return facts_of_check(
            str(result.path), self.contract, self.run, result, result.findings, model, command=command, bench=bench
        )


def _write_page(reporter: CheckReporter, result: FileVerdict, broken: PromiseBroken, page: Path) -> None:
    reporter.write(result, page)


def check_reporter(path: Path, declared: Declared, model: str, seed: int) -> CheckReporter:
    """The reporter of a check that is done; `model` is the name of the model."""
    return CheckReporter(describe_run(model, declared, seed), find_contract(path))


def check_result(path: Path, checked: Checked, reporter: CheckReporter) -> FileVerdict:
    """What the user gets of a check."""
    return about_file(checked.verdict, path, checked.findings, reporter, signed=checked.signed)


@dataclass(frozen=True, kw_only=True)
class FileVerdict(Verdict, Reportable):
    """A verdict with the file that it is about, and all findings, warnings and notes among them.

    `signed`: the contract in the file is about the file as it is now.
    """

    path: Path = field(default_factory=Path)
    findings: tuple[Finding, ...] = ()
    signed: bool = False


def about_file(
    verdict: Verdict, path: Path, findings: tuple[Finding, ...], reporter: Reporter, *, signed: bool = False
) -> FileVerdict:
    """The verdict as one about a file."""
    facts = {each.name: getattr(verdict, each.name) for each in fields(Verdict)}
    return FileVerdict(**facts, path=path, findings=findings, signed=signed, reporter=reporter)


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """`sizes` are measured instead of chosen ones; `seconds` is the time of the calls at one of them."""

    sizes: Sequence[Sizes] = ()
    count: int = 5
    providers: tuple[str, ...] = ()
    threads: int = 1
    seconds: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        read_threads(self.threads)


def bench_file(path: Path, module: torch.nn.Module, declared: Declared, options: BenchOptions, tell: Tell) -> Benched:
    """Measure the file beside its module."""
    chosen = list(options.sizes) or choose_bench_sizes(path, module, declared, options)
    rows = []
    with Reference(module, flatten_outputs) as reference:
        for done, sizes in enumerate(chosen):
            tell("measuring", done, len(chosen))
            rows.append(_measure(path, reference, declared, sizes, options))
    return Benched(path=str(path), rows=tuple(rows), providers=options.providers, threads=options.threads)


def choose_bench_sizes(
    path: Path, module: torch.nn.Module, declared: Declared, options: BenchOptions
) -> list[dict[str, int]]:
    """Sizes of the contract from the least work to the most, at about equal steps among those that take little time."""
    cost = costing(module, declared)
    plan = plan_sizes(declared, (), Cost(cost, cost.cheap, cost.affordable), options.seed)
    contract = find_contract(path)
    inside = [sizes for sizes in plan.sizes if contract is None or contract.domain.contains(sizes)]
    ordered = sorted(inside or [dict(declared.example_sizes)], key=lambda sizes: (cost(sizes), tuple(sizes.values())))
    last = len(ordered) - 1
    places = sorted({round(last * step / max(1, options.count - 1)) for step in range(options.count)})
    return [dict(ordered[place]) for place in places]


def _measure(
    path: Path, reference: Reference, declared: Declared, sizes: Mapping[str, int], options: BenchOptions
) -> BenchRow:
    inputs = declared.make(sizes, options.seed)
    feeds = match_file(path, declared).rename(declared.feeds(inputs))
    elements = sum(math.prod(array.shape) for array in feeds.values())
    request = TimingRequest(
        path=str(path.absolute()),
        feeds=feeds,
        providers=options.providers,
        threads=options.threads,
        seconds=options.seconds,
    )
    eager_ms = _eager_ms(reference, inputs, options.threads)
    try:
        return BenchRow(sizes=dict(sizes), elements=elements, eager_ms=eager_ms, timing=time_calls(request))
    except RuntimeFailed as error:
        return BenchRow(sizes=dict(sizes), elements=elements, eager_ms=eager_ms, error=error.message)


def _eager_ms(reference: Reference, inputs: CallInputs, threads: int) -> float:
    """The least time of a few calls of the module, with as many threads as the file has."""
    import torch

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads or before)
        runs = [reference.run(inputs) for _ in range(_EAGER_CALLS)]
    finally:
        torch.set_num_threads(before)
    return 1000 * min((run.seconds for run in runs if isinstance(run, Answer)), default=math.nan)
