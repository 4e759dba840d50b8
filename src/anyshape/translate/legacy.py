"""torch.onnx's own parts: its operator library, with signatures only of what is needed, and its TorchScript exporter,
the last rung.

torch.onnx parses the source of some 500 functions of onnxscript, and infers the signatures of 830, before it translates
anything: a second of each process. It reads none of them but those of the functions that it calls.

It traces one run, so it may freeze what Python computes. Where torch itself warns that it did, there is no file: what
was frozen is named with its line. All else is for verification to find, as with every rung.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from torch.onnx._internal.exporter import _registration

from anyshape.findings import Finding, PromiseBroken, Source
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.fixed_decisions import find_next_question
from anyshape.modules.module_forms import FlatModule
from anyshape.modules.state import kept
from anyshape.modules.user_code import is_users, make_source
from anyshape.processes import is_own_process
from anyshape.processes.isolated import call_in_own_process
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.captured import OutputTensor
from anyshape.records.export import Exported
from anyshape.translate import IR_VERSION, PRODUCER
from anyshape.translate.names import keep_sources, name_inputs, name_outputs, name_weights, written_axis
from anyshape.translate.opsets import WRITTEN_OPSET

if TYPE_CHECKING:
    import torch


class OperatorLibrary(_registration.ONNXRegistry):  # type: ignore[misc]
    """torch's registry of translations, which infers a signature when its operator is looked up for the first time."""

    def register_op(self, target: Any, function: Callable[..., Any], is_complex: bool = False) -> None:
        """Put a translation before all others of this operator."""
        self._register(target, _without_signature(function, target, is_custom=True, is_complex=is_complex))

    def get_decomps(self, target: Any) -> list[Any]:
        """The translations of an operator with their signatures, our own before torch's."""
        found = super().get_decomps(target)
        for each in found:
            if isinstance(each, _Unread):
                each.infer_signature()
        return found

    def is_registered(self, target: Any) -> bool:
        """Whether an operator has a translation; no signature is inferred for that."""
        return bool(super().get_decomps(target))


class _Unread(_registration.OnnxDecompMeta):  # type: ignore[misc]
    """A translation whose signature is inferred later."""

    skip_signature_inference: bool

    def infer_signature(self) -> None:
        if self.skip_signature_inference:
            self.skip_signature_inference = False
            self.__post_init__()


def _without_signature(function: Callable[..., Any], target: Any, *, is_custom: bool, is_complex: bool) -> _Unread:
    return _Unread(
        onnx_function=function,
        fx_target=target,
        signature=None,
        is_custom=is_custom,
        is_complex=is_complex,
        skip_signature_inference=True,
    )


def load_library(opset: int) -> OperatorLibrary:
    """What `ONNXRegistry.from_torchlib` gives: the translations of torch.onnx and of onnxscript for an opset."""
    from torch.onnx._internal.exporter._torchlib import _torchlib_registry

    library = OperatorLibrary()
    library._opset_version = opset
    for each in _torchlib_registry.get_torchlib_ops():
        library._register(each.fx_target, each)
    for name, function, is_complex in _functions_of_onnxscript():
        target = _registration._get_overload(name)
        if target is not None:
            library._register(target, _without_signature(function, target, is_custom=False, is_complex=is_complex))
    library._cleanup_registry_based_on_opset_version()
    return library


def _functions_of_onnxscript() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """The qualified name of each operator, its function, and whether that is for complex numbers."""
    from onnxscript.function_libs.torch_lib import ops as ops  # which registers its functions
    from onnxscript.function_libs.torch_lib import registration

    for name, found in registration.default_registry.items():
        if not name.startswith("internal::"):
            yield from ((name, function, False) for function in found.overloads)
            yield from ((name, function, True) for function in found.complex)


def export_legacy(module: torch.nn.Module, declared: Declared) -> Exported:
    """One model of a run at the example's sizes. Raises PromiseBroken where values were frozen, else what torch raises.

    It is traced in a process of its own where that is possible: an operator that raises leaves torch's tracer behind in a state
    that ends the process, if the model goes on with `except` (seen to torch 2.13).
    """
    import onnx

    if any(leaf.is_open_number for leaf in declared.open_leaves):
        raise PromiseBroken(_takes_tensors_only())
    if is_own_process():
        written, tensors = call_in_own_process(lambda tell: _trace(module, declared))
    else:
        written, tensors = _trace(module, declared)
    model = ir.serde.deserialize_model(onnx.load_from_string(written.tobytes()))
    return _named(model, tensors, declared)


def _trace(module: torch.nn.Module, declared: Declared) -> tuple[np.ndarray, list[OutputTensor]]:
    """The bytes of a file, as an array since that needs no copy between processes, and its outputs."""
    import torch

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
    tensors = [
        OutputTensor(path, str(value.dtype).removeprefix("torch."), (None,) * value.dim())
        for path, value in zip(flat.seen.paths, outputs, strict=True)
    ]
    return np.frombuffer(written.getbuffer(), dtype=np.uint8), tensors


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
