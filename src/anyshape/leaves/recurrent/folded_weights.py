"""Weights in ONNX's layout: nodes of our translations that compute with weights alone  ->  initializers.

torch.onnx's optimizer folds small constants only, and would leave a large network to reorder its gates in every run.
Here every size is folded, equal computations on the same weights into one initializer: a network called twice has its
weights once. Allowed where all inputs are initializers that are no graph inputs, and the results are no graph outputs.

Recurrent nodes at batch size 0: `LSTM(x)  ->  LSTM(x with at least one sequence)`, its outputs cut back.

onnxruntime 1.31 ends the whole process at a recurrent node without sequences, where torch returns empty tensors. Only
for domains that have such a size: it costs a copy of the input and of the outputs. Packed input never needs it, since
torch refuses to pack nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

Array = Any  # of numpy's own types, or of the small ones that ml_dtypes adds


def fold_weights(model: ir.Model) -> int:
    """Returns how many initializers were made. Unused weights are dropped."""
    graph = model.graph
    folded: set[ir.Node] = set()
    for node in graph:
        if _can_fold(node, folded):
            folded.add(node)
    wanted = [value for node in folded for value in node.outputs if any(user not in folded for user, _ in value.uses())]
    by_key: dict[Hashable, ir.Value] = {}
    replacements = [(value, by_key.setdefault(_key(value), value)) for value in _in_order(graph, wanted)]
    initializers = {first: _make_initializer(graph, first) for first in by_key.values()}
    for value, first in replacements:
        ir.convenience.replace_all_uses_with(value, initializers[first])
    sources = {value for node in folded for value in node.inputs if value is not None and _is_weight(value)}
    graph.remove(folded, safe=True)
    for value in sources:
        if not value.uses() and value.name is not None:
            del graph.initializers[value.name]
    return len(initializers)


def _in_order(graph: ir.Graph, values: Sequence[ir.Value]) -> list[ir.Value]:
    wanted = set(values)
    return [value for node in graph for value in node.outputs if value in wanted]


def _can_fold(node: ir.Node, folded: set[ir.Node]) -> bool:
    """`folded` holds the nodes before this one that can. Constants without a weight are left to the optimizer."""
    target = getattr(node.meta.get("node"), "target", None)
    if getattr(target, "namespace", None) != "anyshape" or node.op_type not in _EVALUATE:
        return False
    if any(output.is_graph_output() for output in node.outputs):
        return False
    inputs = [value for value in node.inputs if value is not None]
    from_weights = [_is_weight(value) or value.producer() in folded for value in inputs]
    return any(from_weights) and all(
        is_from_weights or _is_constant(value) for value, is_from_weights in zip(inputs, from_weights, strict=True)
    )


def _is_weight(value: ir.Value) -> bool:
    return value.is_initializer() and value.const_value is not None and not value.is_graph_input()


def _is_constant(value: ir.Value) -> bool:
    return not value.is_initializer() and ir.convenience.get_const_tensor(value) is not None


def _key(value: ir.Value) -> Hashable:
    """Equal for values that are computed alike from the same weights."""
    if _is_weight(value):
        return id(value)
    node = value.producer()
    if _is_constant(value) or node is None:
        array = _evaluate(value)
        return array.dtype.name, array.shape, array.tobytes()
    attributes = tuple(sorted((name, str(attribute.value)) for name, attribute in node.attributes.items()))
    return node.op_type, value.index(), attributes, tuple(_key(each) for each in node.inputs if each is not None)


def _make_initializer(graph: ir.Graph, value: ir.Value) -> ir.Value:
    array = np.ascontiguousarray(_evaluate(value))
    stem = f"{next(_weight_names(value))}_onnx"
    taken = sum(name == stem or name.startswith(f"{stem}_") for name in graph.initializers)
    tensor = ir.tensor(array, name=f"{stem}_{taken}" if taken else stem)
    type_ = ir.TensorType(tensor.dtype)
    initializer = ir.Value(name=tensor.name, type=type_, shape=ir.Shape(array.shape), const_value=tensor)
    graph.register_initializer(initializer)
    return initializer


def _weight_names(value: ir.Value) -> Iterator[str]:
    node = value.producer()
    if _is_weight(value):
        yield value.name or "weight"
    elif node is not None:
        for each in node.inputs:
            if each is not None:
                yield from _weight_names(each)


def _evaluate(value: ir.Value) -> Array:
    known = ir.convenience.get_const_tensor(value)
    if known is not None:
        return known.numpy()
    node = value.producer()
    assert node is not None
    inputs = [_evaluate(each) for each in node.inputs if each is not None]
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    return _EVALUATE[node.op_type](attributes, *inputs)[value.index() or 0]


_EVALUATE: dict[str, Callable[..., Sequence[Array]]] = {
    "Cast": lambda attributes, array: [array.astype(ir.DataType(attributes["to"]).numpy())],
    "Concat": lambda attributes, *arrays: [np.concatenate(arrays, axis=attributes["axis"])],
    "MatMul": lambda attributes, left, right: [left @ right],
    "Split": lambda attributes, array: np.split(array, attributes["num_outputs"], axis=attributes["axis"]),
    "Transpose": lambda attributes, array: [array.transpose(attributes["perm"])],
    "Unsqueeze": lambda attributes, array, axes: [np.expand_dims(array, tuple(axes.tolist()))],
}
"""The few operators that translations apply to weights."""


_RECURRENT = ("LSTM", "GRU", "RNN")
_LENGTHS = 4
_BATCHED = (0, 5, 6)
"""The inputs that have a batch: X, initial_h and initial_c."""


def admit_empty_batch(model: ir.Model) -> int:
    """Returns how many nodes were changed."""
    nodes = [node for node in model.graph.all_nodes() if node.op_type in _RECURRENT and not _has_lengths(node)]
    for node in nodes:
        _admit(node)
    return len(nodes)


def _has_lengths(node: ir.Node) -> bool:
    return len(node.inputs) > _LENGTHS and node.inputs[_LENGTHS] is not None


def _admit(node: ir.Node) -> None:
    tape = Tape()
    inputs, graph = node.inputs[0], node.graph
    assert inputs is not None and graph is not None
    batch = tape.op("Shape", [inputs], {"start": 1, "end": 2})
    missing = tape.op("Max", [tape.op("Sub", [_ints(tape, 1), batch]), _ints(tape, 0)])
    pads = tape.op("Concat", [_ints(tape, 0, 0, 0, 0), missing, _ints(tape, 0)], {"axis": 0})
    padded = [
        tape.op("Pad", [value, pads]) if place in _BATCHED and value is not None else value
        for place, value in enumerate(node.inputs)
    ]
    outputs = tape.op_multi_out(
        node.op_type, padded, node.attributes, num_outputs=len(node.outputs), version=node.version, name=node.name
    )
    for old, wide in zip(node.outputs, outputs, strict=True):
        # The batch is the last axis but one of every output.
        cut = tape.op("Slice", [wide, _ints(tape, 0), batch, _ints(tape, -2)])
        cut.name, cut.type, cut.shape = old.name, old.type, old.shape
        ir.convenience.replace_all_uses_with(old, cut, replace_graph_outputs=True)
    graph.insert_before(node, tape.nodes)
    graph.remove(node, safe=True)


def _ints(tape: Tape, *values: int) -> ir.Value:
    return tape.op("Constant", [], {"value_ints": list(values)})
