"""A model that onnxruntime's optimizer wrote, with everything that it leaves out: names, shapes, metadata, weights.

dims of inputs and outputs, metadata of the model      ->  those of the model before
lines of user code on nodes                            ->  by the name of the node's first output
weights in the file beside it                          ->  the tensors in memory
opsets of domains without a node                       ->  removed
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

_INFERRED = "unk__"  # prefix of the dims that onnxruntime invents


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
