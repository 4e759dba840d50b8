"""`anyshape.check`: an ONNX file of any exporter beside its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyshape.checking.check_pages import check_reporter, check_result
from anyshape.checking.compare_file import check_engine, check_file, compare_file
from anyshape.checking.outside_runs import AnswersOutside
from anyshape.contract.digest import FileChanged
from anyshape.findings import Finding, PromiseBroken
from anyshape.findings.choices import check_numbers
from anyshape.findings.errors import warn_caller
from anyshape.inputs import declare
from anyshape.intercept.turns import taking_turns
from anyshape.modules.call_limits import handlers_go_through
from anyshape.modules.callables import as_module
from anyshape.report.progress_line import shows_progress, telling
from anyshape.verify import VerifyOptions

if TYPE_CHECKING:
    import torch

    from anyshape.inputs import Declared
    from anyshape.records.file_verdict import FileVerdict
    from anyshape.records.verdict import Verdict

    Model = torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]

__is_entrance__ = True

Progress = Callable[[str, int, int], None]


@shows_progress
@handlers_go_through()
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
) -> FileVerdict:
    """Compare an ONNX file of any exporter with the model over the domain; raise PromiseBroken where they differ.

    `sizes={"batch": 1, "seq": 7}` compares at those sizes alone. `sign=True` renews the contract of a file that was
    changed after it was verified (quantized, simplified) once it compares equal; without it such a file is a warning
    (FileChanged). `operators` and `providers` are as in `anyshape.load`, `values` as in `anyshape.export`. `runtime` is what
    runs the file: one that is not onnxruntime is also run outside the contract, and where it answers, that is a warning.
    The result is a verdict; its `report("out.html")`, like that of PromiseBroken, writes a page.
    """
    module = as_module(model)
    check_numbers(seed, budget=budget, rtol=rtol, atol=atol)
    rules = [where] if isinstance(where, str) else where
    declared = declare(module, inputs, dynamic=dynamic, where=rules, names=names, values=values)
    on = check_engine(Path(path), runtime, providers, sign=sign)
    options = VerifyOptions(
        rtol=rtol, atol=atol, budget_s=budget, clock_s=time_limit, seed=seed, providers=on, runtime=runtime
    )

    def compare(over: Declared) -> tuple[Verdict, tuple[Finding, ...]]:
        return compare_file(Path(path), module, over, options, sizes, telling(progress), operators=operators)

    checked = check_file(Path(path), declared, sizes, compare, sign=sign, runtime=runtime)
    reporter = check_reporter(Path(path), declared, type(module).__name__, seed)
    result = check_result(Path(path), checked, reporter)
    if checked.errors:
        broken = PromiseBroken(*checked.errors)
        broken.write_report = lambda _, page: reporter.write(result, page)
        raise broken
    if checked.change is not None:
        warn_caller(FileChanged(str(checked.change)))
    for answered in checked.outside:
        warn_caller(AnswersOutside(str(answered)))
    return result
