"""Stage: make the ONNX model smaller and faster, without changing what it promises.

This file: constants folded, repeated and dead nodes dropped, weights stored once, batch norms folded into the layer before
them.

A node of a branch whose twin has run before the branch is taken from outside.

    BatchNormalization(Conv(x, w, b), scale, shift, mean, variance)  ->  Conv(x, w * f, (b - mean) * f + shift)
                                                                         f = scale / sqrt(variance + epsilon)

Allowed where nothing else reads what the layer gives, in float32 and float64: a weight in half precision would be rounded
visibly. The new weights are computed in float64 and rounded once; onnxruntime (and torch's own exporter) do the same in
float32. A layer whose new weights are not finite stays as it is.

Files, in the order in which data flows:

    plain_nodes  needless moves and reshapes; fused nodes of onnxruntime that are slower than their parts
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.optimize.plain_nodes import add_weight, count_axes_from_the_front, simplify_nodes, split_skip_norms
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.export import Exported

__all__ = ["fold_norms", "optimize", "split_skip_norms"]


_LARGEST_FOLDED_INPUT = 64 * 1024
_LARGEST_FOLDED_OUTPUT = 64 * 1024 * 1024
_ROUNDS = 2
_NEVER_TWICE_THE_SAME = (
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)
_CHANNEL_OF_WEIGHT = {"Conv": 0, "ConvTranspose": 1}
_STATISTICS = 4
_EPSILON = 1e-5
_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def optimize(exported: Exported, never_empty: Collection[str] = ()) -> Exported:
    """The model with fewer nodes and the same outputs. It is changed in place, and returned. `never_empty`: dims from 1 on."""
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


Folded = dict[tuple[int, ...], tuple[ir.Value, ir.Value]]


@dataclass(frozen=True)
class _Pair:
    """A layer with weights and the norm that follows it, the channel axis of the weights, and all constants."""

    layer: ir.Node
    norm: ir.Node
    axis: int
    constants: tuple[Any, ...]  # weight, bias, scale, shift, mean, variance


def fold_norms(model: ir.Model) -> int:
    """Fold norms in every graph of the model, in place; weights that several layers share are folded once. Count them."""
    known: Folded = {}
    pairs = [
        pair
        for node in list(ir.traversal.RecursiveGraphIterator(model.graph))
        if (pair := _find_pair(node)) is not None and _fold(model, pair, known)
    ]
    for graph in model.graphs() if pairs else ():
        for name in [name for name, value in graph.initializers.items() if _is_unused(value)]:
            del graph.initializers[name]
    return len(pairs)


def _is_unused(value: ir.Value) -> bool:
    return not value.uses() and not value.is_graph_output() and not value.is_graph_input()


def _find_pair(norm: ir.Node) -> _Pair | None:
    if norm.domain or norm.op_type != "BatchNormalization" or _integer(norm, "training_mode", 0) or norm.graph is None:
        return None
    value = norm.inputs[0]
    layer = None if value is None else value.producer()
    if value is None or layer is None or layer.domain or layer.graph is not norm.graph or value.is_graph_output():
        return None
    axis = _channel_axis(layer)
    if axis is None or len(list(value.uses())) != 1:
        return None
    constants = [_array(each) for each in (*layer.inputs[1:2], *norm.inputs[1 : 1 + _STATISTICS])]
    if any(each is None for each in constants) or len({each.dtype for each in constants if each is not None}) != 1:
        return None
    weight, *statistics = constants
    bias = _array(layer.inputs[2]) if len(layer.inputs) > 2 and layer.inputs[2] is not None else np.zeros(1, np.float64)
    if bias is None or bias.size not in (1, *bias.shape[-1:]):
        return None  # the C of a Gemm may have a number for each row
    return _Pair(layer, norm, axis, (weight, bias, *statistics))


def _channel_axis(layer: ir.Node) -> int | None:
    """The axis of the weights that has the channels of the output; None for a layer that is not folded into."""
    if layer.op_type == "Gemm":
        is_plain = all(
            attribute.value == 1.0 for name, attribute in layer.attributes.items() if name in ("alpha", "beta")
        )
        return (0 if _integer(layer, "transB", 0) else 1) if is_plain else None
    if layer.op_type == "ConvTranspose" and _integer(layer, "group", 1) != 1:
        return None  # its weights have the channels of one group
    return _CHANNEL_OF_WEIGHT.get(layer.op_type)


def _fold(model: ir.Model, pair: _Pair, known: Folded) -> bool:
    layer, norm = pair.layer, pair.norm
    key = (*(id(each) for each in (*layer.inputs[1:3], *norm.inputs[1 : 1 + _STATISTICS])), pair.axis)
    if key not in known:
        made = _weights(pair)
        if made is None:
            return False
        stem = f"{layer.inputs[1].name if layer.inputs[1] is not None else ''}.folded"
        known[key] = (_add(model, stem, made[0]), _add(model, f"{stem}.bias", made[1]))
    fresh = ir.Node(
        "",
        layer.op_type,
        [layer.inputs[0], *known[key]],
        list(layer.attributes.values()),
        name=layer.name,
        metadata_props=dict(layer.metadata_props),
    )
    graph = norm.graph
    assert graph is not None
    fresh.outputs[0].type, fresh.outputs[0].shape = norm.outputs[0].type, norm.outputs[0].shape
    ir.convenience.replace_nodes_and_values(graph, norm, [layer, norm], [fresh], [norm.outputs[0]], [fresh.outputs[0]])
    return True


def _weights(pair: _Pair) -> tuple[Any, Any] | None:
    """The new weight and bias in the type of the old ones."""
    weight, bias, scale, shift, mean, variance = (each.astype(np.float64) for each in pair.constants)
    given = pair.norm.attributes.get("epsilon")
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + (given.as_float() if given is not None else _EPSILON))
        along = [1] * weight.ndim
        along[pair.axis] = -1
        made = (weight * factor.reshape(along), (bias.reshape(-1) - mean) * factor + shift)
        narrow = tuple(each.astype(pair.constants[0].dtype) for each in made)
    return (narrow[0], narrow[1]) if all(np.isfinite(each).all() for each in narrow) else None


def _add(model: ir.Model, stem: str, array: Any) -> ir.Value:
    names = (stem, *(f"{stem}.{number}" for number in range(1, len(model.graph.initializers) + 1)))
    name = next(each for each in names if each not in model.graph.initializers)
    return add_weight(model, name, array)


def _array(value: ir.Value | None) -> Any:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return tensor.numpy() if tensor is not None and tensor.dtype in _TYPES else None


def _integer(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()
