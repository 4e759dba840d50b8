"""A file for one runtime: `target="onnxruntime"` has the fused operators of onnxruntime's own optimizer.

exported -> optimized by onnxruntime, slow forms split -> verified        kept if it is right
exported -> verified                                                      otherwise, with a warning

The portable file takes the place of an optimized one that is wrong: what was asked of the file is to be right first, and
onnxruntime applies the same optimizer when it loads a portable file.

dims of inputs and outputs, metadata of the model      ->  those of the model before
lines of user code on nodes                            ->  by the name of the node's first output
weights in the file beside it                          ->  the tensors in memory
opsets of domains without a node                       ->  removed
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from anyshape.diagnose.differences import diagnose_changed, diagnose_custom_nodes, diagnose_rejected
from anyshape.exporting.context import ExportContext
from anyshape.findings import Finding
from anyshape.graphs import find_needs
from anyshape.optimize import split_skip_norms
from anyshape.records.export import Exported
from anyshape.records.verdict import Verdict
from anyshape.runtime.child import optimize_file
from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.saving import lay_out, save_to_run

ONNXRUNTIME = "onnxruntime"
_CONTRIBUTED = "com.microsoft"  # the domain of operators that no other runtime has
_INFERRED = "unk__"  # prefix of the dims that onnxruntime invents


@dataclass(frozen=True)
class Targeted:
    """The file that is kept, its verdict, and a warning where it is not the one for the target."""

    exported: Exported
    verdict: Verdict
    findings: tuple[Finding, ...] = ()


def verify_for_target(exported: Exported, context: ExportContext, verify: Callable[[Exported], Verdict]) -> Targeted:
    """The file for the target of the export, verified. Parts of a larger file stay portable until they are put together."""
    if context.options.target != ONNXRUNTIME or context.is_part:
        return Targeted(exported, verify(exported))
    fused = fuse(exported)
    if isinstance(fused, Finding):
        verdict = verify(exported)
        return Targeted(exported, verdict, (fused,) if verdict.passed else ())
    verdict = verify(fused)
    if verdict.passed:
        return Targeted(fused, verdict)
    portable = verify(exported)
    return Targeted(exported, portable, (diagnose_changed(verdict),) if portable.passed else ())


def fuse(exported: Exported) -> Exported | Finding:
    """The model as onnxruntime's optimizer writes it, or the reason for which there is none. The given one stays as it is."""
    import onnx_ir as ir

    if needs := find_needs(exported.model):
        return diagnose_custom_nodes(needs)
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "fused.onnx"
        save_to_run(exported.model, source)
        try:
            optimize_file(source, target)
            fused = ir.load(target)
            split_skip_norms(fused)
            restore_model(fused, exported.model, dict(lay_out(exported.model, "").tensors))
        except RuntimeRejected as error:
            return diagnose_rejected(error.message)
        except (ValueError, KeyError) as error:
            return diagnose_rejected(str(error))
    is_portable = not any(domain.startswith(_CONTRIBUTED) for domain in fused.opset_imports)
    return replace(exported, model=fused, target="" if is_portable else ONNXRUNTIME)


def restore_model(fused: ir.Model, before: ir.Model, weights: Mapping[int, ir.TensorProtocol]) -> None:
    """Change `fused` in place. `weights` maps offsets in the file of weights to the tensors that were written there.

    Raises ValueError where inputs or outputs are not those of the model before.
    """
    _restore_borders(fused.graph, before.graph)
    fused.metadata_props.update(before.metadata_props)
    fused.producer_name, fused.producer_version = before.producer_name, before.producer_version
    fused.doc_string, fused.graph.doc_string, fused.graph.name = (
        before.doc_string,
        before.graph.doc_string,
        before.graph.name,
    )
    fused.graph.metadata_props.update(before.graph.metadata_props)
    _restore_lines(fused, before)
    for graph in fused.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = weights[value.const_value.offset or 0]
    used = {node.domain for graph in fused.graphs() for node in graph}
    for domain in [domain for domain in fused.opset_imports if domain and domain not in used]:
        del fused.opset_imports[domain]


def _restore_borders(fused: ir.Graph, before: ir.Graph) -> None:
    for own, other in ((fused.inputs, before.inputs), (fused.outputs, before.outputs)):
        if [value.name for value in own] != [value.name for value in other]:
            raise ValueError("inputs or outputs have other names")
        for value, original in zip(own, other, strict=True):
            if value.type != original.type:
                raise ValueError(f"{value.name} has another type")
            value.shape = None if original.shape is None else original.shape.copy()
            value.metadata_props.update(original.metadata_props)


def _restore_lines(fused: ir.Model, before: ir.Model) -> None:
    """Metadata of nodes, and no shapes with invented names."""
    known = {
        node.outputs[0].name: node.metadata_props
        for graph in before.graphs()
        for node in graph
        if node.outputs and node.metadata_props
    }
    for graph in fused.graphs():
        for node in graph:
            if node.outputs:
                node.metadata_props.update(known.get(node.outputs[0].name, {}))
            for value in node.outputs:
                if value.shape is not None and any(_is_invented(size) for size in value.shape):
                    value.shape = None


def _is_invented(size: int | ir.SymbolicDim) -> bool:
    return not isinstance(size, int) and (size.value or "").startswith(_INFERRED)
