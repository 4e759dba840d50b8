"""What a branch computes again, taken from outside: a node of a branch whose twin has run before the branch goes.

y = f(x); If(test, then: z = f(x) + 1, ...)   ->   y = f(x); If(test, then: z = y + 1, ...)
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

_NEVER_TWICE_THE_SAME = (
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)
Key = tuple[Any, ...]


def share_outer_values(model: ir.Model) -> None:
    """In place. What a branch gives stays its own node: ONNX wants outputs of a branch to be made in it."""
    _share(model.graph, {})


def _share(graph: ir.Graph, outside: dict[Key, ir.Node]) -> None:
    seen = dict(outside)
    kept = {id(value) for value in graph.outputs}
    for node in list(graph):
        for branch in _branches(node):
            _share(branch, seen)
        key = _key(node)
        if key is None:
            continue
        twin = seen.get(key)
        if twin is None:
            seen[key] = node
        elif not any(id(value) in kept for value in node.outputs):
            for own, other in zip(node.outputs, twin.outputs, strict=True):
                ir.convenience.replace_all_uses_with(own, other)
            graph.remove(node, safe=True)


def _branches(node: ir.Node) -> list[ir.Graph]:
    return [attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]


def _key(node: ir.Node) -> Key | None:
    """What makes two nodes one; None for those that hold graphs, or answer otherwise each time."""
    if node.op_type in _NEVER_TWICE_THE_SAME or _branches(node):
        return None
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        if attribute.is_ref():
            return None
        value = attribute.value
        if isinstance(value, ir.TensorProtocol):
            attributes.append((name, f"{value.dtype} {value.shape}", value.tobytes()))
        else:
            attributes.append((name, repr(value), b""))
    inputs = tuple(id(value) for value in node.inputs)
    return node.domain, node.op_type, node.overload, inputs, tuple(attributes), len(node.outputs)
