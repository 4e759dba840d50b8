"""Split what onnxruntime fuses although its CPU kernel for the fused node is slower than those of the parts.

SkipLayerNormalization(x, skip, scale, shift, bias)   ->  LayerNormalization(Sum(x, skip, bias), scale, shift)

The fused kernel takes three times as long on float32 (onnxruntime 1.31). It is `Sum` and not `Add`, since onnxruntime would
fuse an `Add` again when it loads the file.
"""

from __future__ import annotations

import onnx_ir as ir

_FUSED = ("com.microsoft", "SkipLayerNormalization")
_SINCE = 17  # the opset from which on LayerNormalization is an operator of ONNX
_MEAN, _SUM = 1, 3  # outputs of the fused node: mean and inverse deviation, which only training has, and the sum


def split_skip_norms(model: ir.Model) -> int:
    """Splits such nodes of float32. Returns how many there were."""
    if model.opset_imports.get("", 0) < _SINCE:
        return 0
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if _is_split(node)]
    for node in nodes:
        _split(node)
    return len(nodes)


def _is_split(node: ir.Node) -> bool:
    if (node.domain, node.op_type) != _FUSED or len(node.inputs) < 4 or node.inputs[3] is None:
        return False
    has_statistics = any(value.uses() for value in node.outputs[_MEAN:_SUM])
    scale = node.inputs[2]
    return scale is not None and scale.dtype == ir.DataType.FLOAT and not has_statistics


def _split(node: ir.Node) -> None:
    x, skip, scale, shift, *bias = node.inputs
    added = ir.node("Sum", [x, skip, *(each for each in bias if each is not None)], name=f"{node.name}_sum")
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-12
    norm = ir.node(
        "LayerNormalization", [added.outputs[0], scale, shift], {"axis": -1, "epsilon": epsilon}, name=node.name
    )
    norm.metadata_props.update(node.metadata_props)
    added.outputs[0].name = f"{node.outputs[0].name}_sum"  # no name of an outer graph
    assert node.graph is not None
    sums = node.outputs[_SUM : _SUM + 1]
    old, new = [node.outputs[0], *sums], [norm.outputs[0], *(added.outputs[0] for _ in sums)]
    for before, after in zip(old, new, strict=True):
        after.name, after.type, after.shape = before.name, before.type, before.shape
    ir.convenience.replace_nodes_and_values(node.graph, node, [node], [added, norm], old, new)
