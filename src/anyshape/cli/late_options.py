"""`--report` and `--ray` of the commands, loaded only where they are given: pages, and comparisons in shares on a Ray
cluster.

The plan is made here, and travels with the file and the source. A worker loads the source, and makes its share of the trials
as `check` does. A share may be missing nowhere: the verdict is that of the whole plan.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anyshape.cli import ProgressLine
from anyshape.findings import PromiseBroken

if TYPE_CHECKING:
    import torch

    from anyshape.batch import Batch
    from anyshape.checking.compare_file import Checked
    from anyshape.exporting.context import CompareFile, Tell
    from anyshape.inputs import Declared
    from anyshape.records.export import Export
    from anyshape.records.runs import Benched
    from anyshape.records.verdict import Verdict
    from anyshape.report.file_comparison import FilesCompared
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions, VerifyRequest
    from anyshape.verify.plan import SharedPlan


_WRITING = "writing the report"


def check_report(path: Path | None, *, measure: bool = False) -> None:
    """Find out before the work that the page cannot be made. Raises UsageError."""
    from anyshape.report.page import check_report_packages

    if measure and path is None:
        raise typer.BadParameter("--measure is for the page of --report: add --report out.html")
    if path is not None:
        check_report_packages()


def command_line() -> str:
    """How anyshape was called, to be typed again."""
    return shlex.join(["anyshape", *sys.argv[1:]])


def write_result(path: Path | None, result: Export | PromiseBroken, *, quiet: bool) -> None:
    """Write the page of an export or of its refusal, where one is wanted."""
    from anyshape.exporting import PageReporter, write_refusal

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        if isinstance(result, PromiseBroken):
            write_refusal(result, path, command=command_line())
        else:
            PageReporter().write(result, path, command=command_line())


def write_results(path: Path | None, files: Sequence[Export], *, quiet: bool) -> None:
    """Write the page of an export, where one is wanted; of several files a page each, `out-encoder_model.html`."""
    for each in files:
        place = path
        if path is not None and each.path is not None and len(files) > 1:
            place = path.with_stem(f"{path.stem}-{each.path.stem}")
        write_result(place, each, quiet=quiet)


def measure_file(file: Path, module: torch.nn.Module, declared: Declared, seed: int, tell: Tell) -> Benched:
    """Latency and memory of a file at a few sizes of its domain."""
    from anyshape.checking import BenchOptions, bench_file

    return bench_file(file, module, declared, BenchOptions(seed=seed), tell)


def write_check(
    path: Path | None,
    file: Path,
    checked: Checked,
    declared: Declared,
    benched: Benched | None,
    *,
    model: str,
    seed: int,
    quiet: bool,
) -> None:
    """Write the page of a check, where one is wanted."""
    from anyshape.checking import check_reporter, check_result

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        reporter = check_reporter(file, declared, model, seed)
        reporter.write(check_result(file, checked, reporter), path, benched, command=command_line())


def write_comparison(
    path: Path | None, compared: FilesCompared, declared: Declared, *, model: str, seed: int, quiet: bool
) -> None:
    """Write the page of two files, where one is wanted."""
    from anyshape.checking.two_files import ComparisonReporter, with_page

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        ComparisonReporter().write(with_page(compared, declared, model, seed), path, command=command_line())


def write_batch(path: Path | None, batch: Batch, *, quiet: bool) -> None:
    """Write the page of a batch, where one is wanted: a row for each model."""
    from anyshape.batch.rows import write_rows_page

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        write_rows_page(path, batch.path.name, batch.rows, batch.total, command=command_line())


TellShare = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class ShareCall:
    """What a worker needs for its share; paths are those of the worker.

    `over_contract`: the domain is that of the contract in the file, whatever the source declares. `part` is the name of the
    model, of a source that has several. `weights` is a file with the tensors of the exported module, "" for none.
    """

    file: str
    model: str
    where: tuple[str, ...]
    values: str | None
    source: SourceOptions
    over_contract: bool
    options: VerifyOptions | None = None
    part: str = ""
    plan: SharedPlan | None = None
    weights: str = ""


def compare_share(call: ShareCall, share: tuple[int, int]) -> Verdict:
    """On a worker: the verdict of a share."""
    from anyshape.checking.compare_file import compare_file
    from anyshape.contract import find_contract
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.sources import load_part
    from anyshape.verify import VerifyOptions

    loaded = load_part(call.model, Path(call.part or call.file), call.source)
    path, options = Path(call.file), replace(call.options or VerifyOptions(), share=share)
    with exporting(loaded.model, _ignore) as module:
        if call.weights:
            _put_weights(module, Path(call.weights))
        rules = [*loaded.where, *call.where]
        given = call.values or loaded.values
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=given)
        contract = find_contract(path) if call.over_contract else None
        declared = replace(declared, domain=contract.domain) if contract is not None else declared
        return compare_file(path, module, declared, options, None, _ignore, call.model, plan=call.plan)[0]


def _ignore(stage: str, done: int, total: int) -> None: ...


def comparing_on_ray(address: str, call: ShareCall, tell: TellShare) -> Callable[[VerifyRequest], Verdict]:
    """A function that makes the comparisons of a request on a cluster. Samples of random models are compared here, whole."""
    from anyshape.verify import verify

    return lambda request: _spread(address, call, request, tell) or verify(request)


def exporting_on_ray(address: str, call: ShareCall, tell: TellShare) -> Callable[[str], CompareFile]:
    """For the name of a part, a function that compares the files of its export on a cluster.

    The module of the export, and it alone, decides against a file: where a worker sees a difference or a refusal, all is
    compared here again. A worker loads the model anew, and may have got another one.
    """

    def compare(part: str, request: VerifyRequest, module: torch.nn.Module) -> Verdict:
        from anyshape.verify import verify  # not before the source is loaded: torch takes seconds

        weights = Path(fspath(request.model)).with_name("weights.pt")  # type: ignore[arg-type]
        _save_weights(module, weights)
        options = replace(request.options, progress=None)
        there = replace(call, file=fspath(request.model), part=part, options=options, weights=str(weights))  # type: ignore[arg-type]
        verdict = None if request.operators else _spread(address, there, request, tell)
        is_clear = verdict is not None and verdict.passed and not verdict.refused
        return verdict if verdict is not None and is_clear else verify(request)

    return lambda part: lambda request, module: compare(part, request, module)


def _spread(address: str, call: ShareCall, request: VerifyRequest, tell: TellShare) -> Verdict | None:
    """The verdict of all shares; None where the comparisons cannot be spread."""
    from anyshape.batch.jobs import Job
    from anyshape.batch.model_files import pack
    from anyshape.batch.ray_cluster import spread
    from anyshape.deploying.deployment import weights_beside
    from anyshape.verify.plan import share_plan
    from anyshape.verify.tally import join_verdicts

    plan = None if request.options.is_random else share_plan(request)
    if plan is None or not plan.trials:
        return None
    weights = [str(Path(call.file).resolve().parent / each) for each in weights_beside(Path(call.file))]
    files = [each for each in (call.file, *weights, call.weights) if each and Path(each).is_file()]
    travelling = pack(Job(source=call.model, files=tuple(files)))
    there = replace(
        call,
        plan=plan,
        model=travelling.job.source,
        file=travelling.place_of(Path(call.file)),
        weights=travelling.place_of(Path(call.weights)) if call.weights else "",
    )
    shares = spread(
        address,
        travelling,
        compare_share,
        there,
        most=len(plan.trials),
        tell=lambda done, total: tell("comparing on the cluster, shares", done, total),
    )
    return join_verdicts(shares, [*plan.sizes, *plan.once])


def _save_weights(module: torch.nn.Module, path: Path) -> None:
    import torch

    torch.save({name: tensor.detach().clone() for name, tensor in _tensors(module).items()}, path)


def _put_weights(module: torch.nn.Module, path: Path) -> None:
    """Give the module the tensors of the exported one, where it has the same."""
    import torch

    own, given = _tensors(module), torch.load(path, weights_only=True)
    if {name: tensor.shape for name, tensor in own.items()} != {name: tensor.shape for name, tensor in given.items()}:
        return
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(given[name])


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their names, those that a state dict leaves out, too."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    return {**parameters, **dict(module.named_buffers(remove_duplicate=False))}
