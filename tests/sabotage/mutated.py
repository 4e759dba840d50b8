"""Which nodes a mutation touched, and which read from them: where a locator may point."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from mutations import graphs


def places(good: onnx.ModelProto, mutant: onnx.ModelProto) -> set[str]:
    """The names of the mutated nodes and of their direct consumers."""
    before = {_text(node) for graph in graphs(good.graph) for node in graph.node}
    weights = {tensor.name: tensor.SerializeToString() for tensor in good.graph.initializer}
    values = {
        tensor.name for tensor in mutant.graph.initializer if weights.get(tensor.name) != tensor.SerializeToString()
    }
    mutated = [
        node for graph in graphs(mutant.graph) for node in graph.node if _text(_unwired(node, good)) not in before
    ]
    values.update(name for node in mutated for name in node.output)
    return {_name(node) for node in mutated} | {_name(node) for node in _consumers(mutant.graph, values)}


def _consumers(graph: onnx.GraphProto, values: set[str]) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        if node.op_type in ("Scan", "Loop"):  # what is carried from turn to turn is read under another name
            made = inner[0].output if node.op_type == "Scan" else inner[0].output[1:]
            carried = zip(made, inner[0].input if node.op_type == "Scan" else inner[0].input[2:], strict=False)
            values = values | {given.name for made, given in carried if made.name in values}
        answers = {value.name for each in inner for value in each.output}
        if values.intersection(node.input) or values.intersection(answers):
            yield node
        for each in inner:
            yield from _consumers(each, values)


def _name(node: onnx.NodeProto) -> str:
    return node.name or node.output[0]


def _unwired(node: onnx.NodeProto, good: onnx.ModelProto) -> onnx.NodeProto:
    """The node as it was before an output was put behind another node, under the name `inner`."""
    fresh = onnx.NodeProto()
    fresh.CopyFrom(node)
    outer = good.graph.output[0].name
    fresh.input[:] = [outer if name == "inner" else name for name in fresh.input]
    fresh.output[:] = [outer if name == "inner" else name for name in fresh.output]
    return fresh


def _text(node: onnx.NodeProto) -> bytes:
    """Without its graphs: a node inside them is one of its own."""
    fresh = onnx.NodeProto()
    fresh.CopyFrom(node)
    for attribute in fresh.attribute:
        attribute.ClearField("g")
    return fresh.SerializeToString(deterministic=True)
