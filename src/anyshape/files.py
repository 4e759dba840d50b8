"""ONNX files: a static file made dynamic (`fix`), dims of a file made static (`freeze`), two files compared (`compare`).

from anyshape import files
files.fix("static.onnx", "dynamic.onnx", {"input": "batch 3 224 224"})
files.freeze("dynamic.onnx", "one.onnx", {"batch": 1})
files.compare("ours.onnx", "theirs.onnx", model, inputs)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.checking import check
from anyshape.checking.freezing import freeze_model
from anyshape.checking.repairing import Repair, Repaired
from anyshape.contract import KEY, REPAIRED_KEY, read_model
from anyshape.contract.read_file import foreign_errors, graph_of
from anyshape.contract.safe_file import check_to_edit, sort_graphs
from anyshape.contract.safe_tensors import unsafe
from anyshape.findings import UsageError, check_numbers, raises_for_caller
from anyshape.findings.arguments import read_list, read_path, read_sizes, read_words
from anyshape.inputs import declare
from anyshape.intercept.turns import taking_turns
from anyshape.modules.callables import as_module
from anyshape.processes.isolated import in_own_process
from anyshape.records.contract import Contract
from anyshape.repair.declared_words import DeclaredAxes, read_declared, split_declaration
from anyshape.repair.known_shapes import Axes, axes_text, name_of
from anyshape.report.file_comparison import FilesCompared
from anyshape.report.progress_line import shows_progress, telling
from anyshape.runtime.session import check_providers
from anyshape.saving import check_writable, command_files, save_model
from anyshape.saving.outputs import MODEL
from anyshape.verify import VerifyOptions

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["FilesCompared", "FixedFile", "FrozenFile", "compare", "fix", "freeze"]

__is_entrance__ = True

_SMALL = 4096


@dataclass(frozen=True, kw_only=True)
class FixedFile:
    """A file that was made dynamic.

    `changed` has the nodes whose constants were replaced, `evidence` what confirms the file, `multiples` the dims that have
    to be multiples of a number: at other sizes a node of the file raises.
    """

    path: Path
    inputs: Mapping[str, Axes]
    outputs: Mapping[str, Axes]
    changed: tuple[str, ...]
    evidence: tuple[str, ...]
    multiples: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"fixed: {self.path}"]
        lines += [f"  {name}: {axes_text(axes)}" for side in (self.inputs, self.outputs) for name, axes in side.items()]
        lines += [f"  rule      {name} is a multiple of {number}" for name, number in self.multiples.items()]
        lines += [f"  changed   {', '.join(self.changed) or 'no constant'}"]
        lines += [f"  evidence  {text}" for text in self.evidence]
        return "\n".join(lines)

    def as_plain(self) -> dict[str, Any]:
        """For JSON, and for the metadata of the file."""
        sides = {
            side: {name: [str(axis) for axis in axes] for name, axes in values.items()}
            for side, values in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        return {
            **sides,
            "multiples": dict(self.multiples),
            "changed": list(self.changed),
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True, kw_only=True)
class FrozenFile:
    """A file whose dims were made static. `contract` is what it declares; `has_contract`: whether its metadata has it."""

    path: Path
    contract: Contract
    has_contract: bool
    folded: int

    def __str__(self) -> str:
        lines = [f"frozen: {self.path}"]
        lines += [f"  {tensor}" for tensor in (*self.contract.inputs, *self.contract.outputs)]
        lines += [f"  folded    {self.folded} nodes"]
        lines += [f"  contract  {'renewed' if self.has_contract else 'none'}"]
        return "\n".join(lines)


@raises_for_caller
@in_own_process()
def fix(
    path: str | PathLike[str],
    output: str | PathLike[str],
    dynamic: Mapping[str, str] | Sequence[str] | str,
    *,
    read: Mapping[str, str] | Sequence[str] = (),
    model: Any = None,
    inputs: Any = None,
    where: Sequence[str] = (),
    external_data: bool | None = None,
    time_limit: float = 600.0,
    overwrite: bool = False,
    progress: Callable[[str, int, int], None] | bool | None = None,
    isolate: bool | None = None,
) -> FixedFile:
    """Make a static ONNX file dynamic, or raise PromiseBroken that names the node in the way; nothing is written then.

    `dynamic` has words for the axes of inputs, and of outputs where that settles a question: `{"input": "batch 3 h w"}`, or
    `["input: batch 3 h w"]`. Constants that hold sizes are replaced where one reading fits. `read` answers the question of
    an AS502: `{"node": "[batch, 8*seq]"}`. The file is confirmed by the original: at its own sizes, and in pieces along dims
    on which the model acts independently. With `model` and `inputs` (as in `anyshape.export`) it is also compared with the
    model over the sizes of its domain. `output` is another file; one that is no ONNX file is replaced with `overwrite` alone.
    """
    source, target = read_path("path", path), read_path("output", output)
    words, answers = _as_words("dynamic", dynamic), _as_words("read", read)
    with command_files(source, overwrite=overwrite):
        check_writable(target, MODEL)
        loaded = open_checked(source)
        declared = read_declared(loaded.graph, words)
        repair = Repair(loaded, source, declared, answers)
        repaired = repair.find()
        evidence = repaired.evidence
        with repair.edited(repaired.reading) as edited:
            if model is not None:
                evidence = (*evidence, _compared(edited, model, inputs, where, progress))
            result = _result(target, declared, repaired, evidence)
            edited.metadata_props.pop(KEY, None)
            edited.metadata_props[REPAIRED_KEY] = json.dumps(result.as_plain())
            save_model(edited, target, external_data=external_data)
    return result


@raises_for_caller
@in_own_process()
def freeze(
    path: str | PathLike[str],
    output: str | PathLike[str],
    sizes: Mapping[str, int],
    *,
    external_data: bool | None = None,
    time_limit: float = 600.0,
    isolate: bool | None = None,
    overwrite: bool = False,
) -> FrozenFile:
    """Make dims of a file static, fold what follows, and renew its contract: `freeze("m.onnx", "one.onnx", {"batch": 1})`.

    `output` is another file; one that is no ONNX file is replaced with `overwrite` alone. Raises UsageError for sizes outside
    the file's contract, DeclarationError for dims that it does not have.
    """
    source, target = read_path("path", path), read_path("output", output)
    at = read_sizes("sizes", sizes)
    with command_files(source, overwrite=overwrite):
        check_writable(target, MODEL)
        model = open_checked(source)
        frozen = freeze_model(model, source, at)
        save_model(model, target, external_data=external_data)
    return FrozenFile(path=target, contract=frozen.contract, has_contract=frozen.has_contract, folded=frozen.folded)


@raises_for_caller
@shows_progress
@in_own_process()
@taking_turns(model_at=2)
def compare(
    path: str | PathLike[str],
    other: str | PathLike[str],
    model: Any,
    inputs: Any,
    *,
    dynamic: Any = None,
    where: Sequence[str] | str = (),
    values: Any = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    budget: float = 60.0,
    time_limit: float = 300.0,
    seed: int = 0,
    measure: int = 4,
    seconds: float = 0.5,
    threads: int = 1,
    providers: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | bool | None = None,
    isolate: bool | None = None,
) -> FilesCompared:
    """Compare two files of one model over the same sizes: each with the model as `anyshape.check` does, and with each other.

    Arguments are those of `anyshape.check`. Latency and memory are measured at `measure` sizes (0: not at all), for `seconds`
    at each of them. Gives a record: `is_kept` (both are right, and agree), `sides`, `rows`; printed, it is a table,
    and `report("out.html")` writes it as a page.
    Raises UsageError where a file cannot be read, or has other inputs than the model.
    """
    from anyshape.checking import BenchOptions
    from anyshape.checking.two_files import ComparingOptions, compare_files, with_page

    paths = read_path("path", path), read_path("other", other)
    at = None if sizes is None else read_sizes("sizes", sizes)
    check_numbers(seed, rtol=rtol, atol=atol, budget=budget, time_limit=time_limit, seconds=seconds)
    module = as_module(model)
    rules = [where] if isinstance(where, str) else where
    declared = declare(module, inputs, dynamic=dynamic, where=rules, values=values)
    on = check_providers(providers)
    options = ComparingOptions(
        verify=VerifyOptions(rtol=rtol, atol=atol, budget_s=budget, clock_s=time_limit, seed=seed, providers=on),
        bench=BenchOptions(
            sizes=[at] if at else (), count=measure, providers=on, threads=threads, seconds=seconds, seed=seed
        )
        if measure
        else None,
        sizes=at,
    )
    compared = compare_files(paths, module, declared, options, telling(progress))
    return with_page(compared, declared, type(module).__name__, seed)


def open_checked(path: Path) -> ir.Model:
    """The model in a file of unknown origin. Raises UsageError where it is not safe to work with."""
    import onnx_ir as ir

    name = str(path)
    proto = read_model(path, needs_weights=True)
    check_to_edit(proto, name)
    model = graph_of(proto, name)
    folder = path.resolve().parent
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor):
                value.const_value = _located(tensor, folder, name)
    _read_small(model)
    if model.functions:
        from onnx_ir.passes.common import InlinePass

        with foreign_errors(name, "its functions cannot be written out."):
            model = InlinePass()(model).model
    sort_graphs(model, name)
    return model


def _read_small(model: ir.Model) -> None:
    """Small weights of a second file are read now: they will lie inside the model."""
    import onnx_ir as ir

    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor) and tensor.nbytes < _SMALL:
                value.const_value = ir.Tensor(tensor.numpy().copy(), tensor.dtype, name=tensor.name)


def _located(tensor: ir.ExternalTensor, folder: Path, model: str) -> ir.ExternalTensor:
    import onnx_ir as ir

    if (folder / tensor.location).stat().st_nlink > 1:  # onnx-ir does not read it
        what = f"its weights lie in {str(tensor.location)!r}, which has more than one name."
        raise UsageError(unsafe(model, what, "a hard link may lead to a file of another folder: copy it."))
    shape = ir.Shape(tensor.shape.numpy())
    name = tensor.name or ""
    return ir.ExternalTensor(
        tensor.location, tensor.offset, tensor.length, tensor.dtype, shape=shape, name=name, base_dir=folder
    )


def _as_words(name: str, given: Mapping[str, str] | Sequence[str] | str) -> dict[str, str]:
    example = f"{name}={{'x': 'batch 3'}}"
    if isinstance(given, Mapping):
        return read_words(name, given, example)
    return split_declaration([given] if isinstance(given, str) else read_list(name, given, (str,), example))


def _result(target: Path, declared: DeclaredAxes, repaired: Repaired, evidence: tuple[str, ...]) -> FixedFile:
    follower = repaired.reading.follower
    return FixedFile(
        path=target,
        inputs=declared.inputs,
        outputs=repaired.reading.outputs,
        changed=tuple(dict.fromkeys(name_of(edit.node) for edit in follower.edits)),
        evidence=evidence,
        multiples=dict(follower.multiples),
    )


def _compared(edited: ir.Model, model: Any, inputs: Any, where: Sequence[str], progress: Any) -> str:
    """The evidence of a comparison with the model itself. Raises PromiseBroken where they differ."""
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "repaired.onnx"
        save_model(edited, path)
        verdict = check(path, model, inputs, where=where, progress=progress)
    return f"equal to the model at {len(verdict.tried)} sizes"
