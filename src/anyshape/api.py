"""`anyshape.export`: arguments -> declaration -> pipeline -> file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyshape.contract import strip_nodes, write_contract
from anyshape.domain.bounded_values import lowest_text
from anyshape.exporting import PageReporter, pipeline, preload, write_refusal
from anyshape.exporting.context import Options
from anyshape.exporting.ladder import STRATEGIES
from anyshape.exporting.targets import ONNXRUNTIME
from anyshape.findings import (
    Finding,
    PromiseBroken,
    UsageError,
    check_choice,
    check_numbers,
    nearest_choice,
    nothing_to_enforce,
    nothing_to_force,
    raises_for_caller,
    warns_where_narrowed,
)
from anyshape.inputs import declare
from anyshape.intercept.turns import taking_turns
from anyshape.modules.callables import as_module
from anyshape.modules.registered import collect_translations
from anyshape.processes.isolated import in_own_process
from anyshape.records.export import Export, without_programs
from anyshape.records.runs import strip_export
from anyshape.report.progress_line import shows_progress, telling
from anyshape.saving import check_writable, command_files, save_model
from anyshape.saving.outputs import MODEL
from anyshape.translate.opsets import DEFAULT_OPSET, OLDEST_ENFORCING_OPSET, check_opset, sizes_not_enforced
from anyshape.verify import VerifyOptions

__is_entrance__ = True

if TYPE_CHECKING:
    import torch

    Model = torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]

Progress = Callable[[str, int, int], None] | bool

ENFORCEMENTS = ("graph", "load")
STATES = ("outputs", "frozen")
RANDOMS = ("runtime",)
TARGETS = (ONNXRUNTIME,)
VERIFICATIONS = ("quick", "none")
_QUICK_SIZES = 8
_BUDGET_S = 60.0
_EVERY_RUNG = "leave strategy out: each is tried in turn, until one is right."


@raises_for_caller
@warns_where_narrowed
@shows_progress
@in_own_process(prepare=without_programs, preload=preload)
@taking_turns(model_at=0)
def export(
    model: Model,
    inputs: Any,
    path: str | PathLike[str] | None = None,
    *,
    dynamic: Any = None,
    where: Sequence[str] | str = (),
    names: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = DEFAULT_OPSET,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    optimize: bool = True,
    external_data: bool | None = None,
    overwrite: bool = False,
    enforce: Literal["graph", "load"] = "graph",
    enforce_values: bool = False,
    target: Literal["onnxruntime"] | None = None,
    strip_source: bool = False,
    force: bool = False,
    accept_narrower: bool = False,
    thorough: bool = False,
    state: Literal["outputs", "frozen"] | None = None,
    random: Literal["runtime"] | None = None,
    repair: bool = False,
    repaired: torch.nn.Module | None = None,
    strategy: str | None = None,
    time_limit: float = 600.0,
    rtol: float | None = None,
    atol: float | None = None,
    budget: float | None = None,
    verify: Literal["quick", "none"] | None = None,
    seed: int = 0,
    values: Mapping[str, str] | Literal["given"] | None = None,
    progress: Progress | None = None,
    isolate: bool | None = None,
) -> Export:
    """Convert a model to ONNX, right at every size of its domain; raise PromiseBroken where that cannot be.

    `model` is a module, a function or method of tensors, or an exported program (`torch.export.export`).

    `inputs` is a tensor, a tuple (positional), a dict (keywords), `anyshape.Inputs(args, kwargs)`, a function of sizes
    that returns one of these (the best way), or a list of several examples. `dynamic` has words for an example's axes:
    `{"x": "batch seq 64"}`; torch's dynamic_axes and dynamic_shapes are taken as they are. `where` has rules:
    `["1 <= batch <= 64", "past + seq <= 4096"]`.

    With `path=None` nothing is written: `result.model` holds the model. With `force=True` a broken file is written too,
    its contract is `broken`, and `anyshape.load` refuses it by default. `enforce="load"` leaves out the
    nodes by which the graph itself refuses sizes outside its contract; `enforce_values=True` adds nodes by which it refuses
    values outside the bounds in its contract, declared or learned. `target="onnxruntime"` writes the file with the fused
    operators of onnxruntime's own optimizer, which no other runtime has; it is this file that is verified.
    `accept_narrower=True` accepts a smaller domain than declared: the contract has it, and every narrowing
    is a warning. `translations` maps torch operators to functions that write them with onnxscript, for this call alone;
    `anyshape.translation` says it once. `external_data` None puts weights into a second file above 2 GB only.
    A file at `path` that is no ONNX file is replaced with `overwrite=True` alone.
    `strip_source=True` leaves lines of your code out of the file and of the result. `time_limit` is in seconds, for the
    whole export. `progress` is called with a stage, how much of it is done and of how much; None shows a bar where a person
    watches (a terminal, a notebook), True plain lines elsewhere, too, and False nothing.
    A model whose later calls answer otherwise than the first is an error, unless `state="outputs"` makes its state inputs
    and outputs of the file, or `state="frozen"` accepts that each call of the file answers as the first does. A random
    model is an error, unless `random="runtime"` keeps torch's random operators in the file.
    With `repair=True` a model that answers at one size only (`x.view(3, 10)`) is edited in memory where one reading of its
    numbers fits, and the file is of the edited source: `result.repair` has the diff for yours, and what confirms it.
    `repaired` is the module as it should be, where you have one: the edits then have to answer as it does.
    `values={"ids": "0 <= ids < 1000", "lengths": "1 <= lengths <= seq"}` declares which values inputs have: the file is
    compared on none but these. With `values="given"` it is compared on the values that `inputs` gives, and on no edge values.

    What is not proved is promised only as far as the file was compared. The comparisons of a large model are kept in
    proportion to the export: by default to half of the rest of it, with all sizes that decide whatever they take; what was
    left out stands in the result. `budget` is another time for them in seconds, estimated, the same on every machine.
    `verify="none"` compares nothing: the contract of the file is `unverified`. `verify="quick"` compares at eight sizes,
    `thorough=True` at every size and declared end that fits into memory.
    """
    module = as_module(model)
    check_opset(opset, enforce_values)
    is_unchecked = enforce == "graph" and opset < OLDEST_ENFORCING_OPSET
    _check_strategy(strategy)
    check_choice("enforce", enforce, ENFORCEMENTS)
    for option, value, choices in (
        ("state", state, STATES),
        ("random", random, RANDOMS),
        ("target", target, TARGETS),
        ("verify", verify, VERIFICATIONS),
    ):
        if value is not None:
            check_choice(option, value, choices)
    check_numbers(seed, time_limit=time_limit, budget=budget, rtol=rtol, atol=atol)
    if path is not None:
        with command_files(overwrite=overwrite):
            check_writable(Path(path), MODEL)
    declared = declare(
        module,
        inputs,
        dynamic=dynamic,
        where=[where] if isinstance(where, str) else where,
        names=names,
        input_names=input_names,
        output_names=output_names,
        values=values,
    )
    options = Options(
        opset=opset,
        translations=collect_translations(translations),
        optimize=optimize,
        enforce="load" if is_unchecked else enforce,
        enforce_values=enforce_values,
        target=target,
        force=force,
        accept_narrower=accept_narrower,
        thorough=thorough,
        state=state,
        random=random,
        strategy=strategy,
        time_limit_s=time_limit,
        verify=_comparing(budget, verify, time_limit, rtol=rtol, atol=atol, seed=seed),
    )

    def run() -> Export:
        if repair:
            from anyshape.exporting.source_repair import export_repaired

            return export_repaired(module, declared, options, telling(progress), repaired)
        return pipeline.export(module, declared, options, telling(progress))

    result = _forced(run, force)
    if enforce_values and not result.contract.value_bounds:
        examples = [f'"{tensor.name}": "{lowest_text(tensor.name, 0)}"' for tensor in result.contract.inputs]
        result = replace(result, findings=(*result.findings, nothing_to_enforce(", ".join(examples[:1]))))
    if is_unchecked:
        result = replace(result, findings=(*result.findings, sizes_not_enforced(opset)))
    if strip_source:
        from anyshape.exporting.source_repair import write_repair

        result = strip_export(result)
        strip_nodes(result.model)
        write_contract(result.model, result.contract)
        write_repair(result)
    if path is None:
        return result
    with command_files(overwrite=overwrite):
        save_model(result.model, Path(path), external_data=external_data)
    return replace(result, path=Path(path))


def _comparing(budget: float | None, verify: str | None, time_limit: float, **tolerances: Any) -> VerifyOptions:
    """How the file is compared: within the user's budget, or in proportion to the export."""
    seconds = _BUDGET_S if budget is None else budget
    return VerifyOptions(
        budget_s=seconds,
        is_budget_given=budget is not None,
        most_sizes=_QUICK_SIZES if verify == "quick" else None,
        is_skipped=verify == "none",
        clock_s=max(time_limit, seconds),
        **tolerances,
    )


def _forced(run: Callable[[], Export], force: bool) -> Export:
    """The export; where there was nothing that `force` could force, a note is added."""
    try:
        result = replace(run(), reporter=PageReporter())
    except PromiseBroken as broken:
        broken.write_report = write_refusal
        if force:
            broken.add(nothing_to_force("there is no file: the model was refused before one could be made."))
        raise
    if not force or not result.is_kept:
        return result
    return replace(result, findings=(*result.findings, nothing_to_force("the file keeps its promise.")))


def _check_strategy(strategy: str | None) -> None:
    if strategy is not None and strategy not in STRATEGIES:
        near = nearest_choice(strategy, STRATEGIES)
        raise UsageError(
            Finding(
                code="AS059",
                name="unknown-strategy",
                what=f"there is no rung {strategy!r} on the ladder.",
                why=f"the rungs are {', '.join(STRATEGIES)}.",
                fix=f"did you mean {near!r}?" if near else _EVERY_RUNG,
                alternative=_EVERY_RUNG if near else "",
            )
        )
