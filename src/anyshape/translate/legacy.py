"""The last rung: torch's TorchScript exporter, while torch has it.

It traces one run, so it may freeze what Python computes. Where torch itself warns that it did, there is no file: what
was frozen is named with its line. All else is for verification to find, as with every rung.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from anyshape.findings import Finding, PromiseBroken, Source
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.fixed_decisions import find_next_question
from anyshape.intercept.quiet import quiet_libraries
from anyshape.modules.frames import is_users, make_source
from anyshape.modules.module_forms import FlatModule
from anyshape.modules.state import kept
from anyshape.records.captured import OutputTensor
from anyshape.records.export import Exported
from anyshape.translate.names import keep_sources, name_inputs, name_outputs, name_weights
from anyshape.translate.opsets import WRITTEN_OPSET
from anyshape.translate.program import IR_VERSION, PRODUCER, written_axis

if TYPE_CHECKING:
    import torch


def export_legacy(module: torch.nn.Module, declared: Declared) -> Exported:
    """One model of a run at the example's sizes. Raises PromiseBroken where values were frozen, else what torch raises."""
    import onnx
    import torch

    if any(leaf.is_open_number for leaf in declared.open_leaves):
        raise PromiseBroken(_takes_tensors_only())
    flat = FlatModule(module, declared.rebuild, declared.call, flatten_outputs)
    values = tuple(declared.open_values(declared.example))
    # A scripted module keeps its control flow; as a whole it cannot be traced through another.
    is_scripted = isinstance(module, torch.jit.ScriptModule) and not declared.example.kwargs
    written = io.BytesIO()
    with kept(module), torch.no_grad(), quiet_libraries(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asked = find_next_question(module, tuple(declared.example.args), declared.example.kwargs, ()).asked
        if asked is not None:
            raise PromiseBroken(_frozen(asked.source, "Python asks for a value of a tensor"))
        outputs = flat(*values)
        torch.onnx.export(
            module if is_scripted else torch.jit.trace(flat, values, check_trace=False),
            tuple(declared.example.args) if is_scripted else values,
            written,  # type: ignore[arg-type]  # a stream is taken, whatever the annotation says
            dynamo=False,
            opset_version=WRITTEN_OPSET,
            do_constant_folding=False,
            input_names=[leaf.name for leaf in declared.open_leaves],
            dynamic_axes={leaf.name: list(range(len(leaf.axes))) for leaf in declared.open_leaves},
        )
    _refuse_frozen(warned)
    model = ir.serde.deserialize_model(onnx.load_from_string(written.getvalue()))
    tensors = [
        OutputTensor(path, str(value.dtype).removeprefix("torch."), (None,) * value.dim())
        for path, value in zip(flat.seen.paths, outputs, strict=True)
    ]
    return _named(model, tensors, declared)


def _named(model: ir.Model, tensors: Sequence[OutputTensor], declared: Declared) -> Exported:
    names = declared.name_outputs([tensor.path for tensor in tensors])
    keep_sources(model)
    name_weights(model)
    name_inputs(model, [leaf.name for leaf in declared.open_leaves])
    name_outputs(model, names)
    for value, leaf in zip(model.graph.inputs, declared.open_leaves, strict=True):
        value.shape = ir.Shape([written_axis(axis) for axis in leaf.axes])
    for value, tensor in zip(model.graph.outputs, tensors, strict=True):
        value.shape = ir.Shape([None] * len(tensor.axes))
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for value in node.outputs:
            if value not in model.graph.outputs:
                value.shape = None  # what torch says of them holds at the example's sizes
    model.producer_name, model.producer_version = PRODUCER, None
    model.ir_version = IR_VERSION
    inputs = tuple(leaf.name for leaf in declared.open_leaves)
    return Exported(model, inputs, tuple(zip(names, tensors, strict=True)), WRITTEN_OPSET)


def _refuse_frozen(warned: Sequence[warnings.WarningMessage]) -> None:
    from torch.jit._trace import TracerWarning

    frozen = [each for each in warned if issubclass(each.category, TracerWarning)]
    if not frozen:
        return
    first = next((each for each in frozen if is_users(each.filename)), frozen[0])
    where = make_source(first.filename, first.lineno) if is_users(first.filename) else None
    raise PromiseBroken(_frozen(where, f"torch warns: {str(first.message).split('. ')[0]}"))


def _frozen(where: Source | None, why: str) -> Finding:
    return Finding(
        code="AS118",
        name="frozen-by-tracing",
        what="torch's older exporter freezes what Python computes here.",
        where=where,
        why=f"{why}.",
        fix="compute it with tensors, or let another rung capture the model (leave strategy out).",
    )


def _takes_tensors_only() -> Finding:
    return Finding(
        code="AS119",
        name="numbers-as-inputs",
        what="torch's older exporter takes tensors only, and an input of the model is a Python number.",
        fix="give the number as a tensor without axes.",
    )
