"""Constants folded, repeated and dead nodes dropped, weights stored once.

A node of a branch whose twin has run before the branch is taken from outside.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import onnx_ir as ir

from anyshape.intercept.quiet import quiet_libraries
from anyshape.optimize.plain_nodes import count_axes_from_the_front, simplify_nodes
from anyshape.records.export import Exported

_LARGEST_FOLDED_INPUT = 64 * 1024
_LARGEST_FOLDED_OUTPUT = 64 * 1024 * 1024
_ROUNDS = 2


def optimize(exported: Exported, never_empty: Collection[str] = ()) -> Exported:
    """The same answers from fewer nodes. The model is changed in place, and given back. `never_empty`: dims from 1 on."""
    import onnx_ir.passes.common as passes
    from onnx_ir.passes import Sequential
    from onnxscript.optimizer import fold_constants

    model = exported.model
    names = [value.name for value in (*model.graph.inputs, *model.graph.outputs)]
    with quiet_libraries():
        passes.InlinePass()(model)
        for _ in range(_ROUNDS):
            fold_constants(model, input_size_limit=_LARGEST_FOLDED_INPUT, output_size_limit=_LARGEST_FOLDED_OUTPUT)
            passes.RemoveUnusedNodesPass()(model)
        simplify_nodes(model, never_empty)
        passes.RemoveUnusedNodesPass()(model)
        Sequential(
            passes.RemoveUnusedFunctionsPass(),
            passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
            passes.LiftSubgraphInitializersToMainGraphPass(),
            passes.DeduplicateInitializersPass(),
            passes.CommonSubexpressionEliminationPass(),
            passes.OutputFixPass(),
            passes.NameFixPass(),
        )(model)
    count_axes_from_the_front(model)
    for value, name in zip((*model.graph.inputs, *model.graph.outputs), names, strict=True):
        value.name = name
    return exported


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
    """In place. What a branch gives stays its own node: ONNX requires outputs of a branch to be made in it."""
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
