"""Recurrent networks and packed sequences as ONNX nodes.

**`anyshape::lstm`, `gru`, `rnn_tanh`, `rnn_relu`**, layer by layer. ONNX's own operator wherever it can: float32 and float16,
and a projection where the hidden state starts at zero. `Scan`, which computes just what torch does, for float64 (onnxruntime
has no such kernels) and for a projection of a given state. bfloat16, which the operators lack, is computed in float32.

**`anyshape::pack`, `repack`, `unpack`, `pad`**: gathers and scatters at the steps that count. `counts`, bool[steps, batch],
says which steps of which sequences count; its true places, row by row, stand in the order in which torch packs.

**Weights** are folded into ONNX's layout. torch.onnx's optimizer folds small constants only, and would leave a large network to
reorder its gates in every run. Here every size is folded, equal computations on the same weights into one initializer: a
network called twice has its weights once. Allowed where all inputs are initializers that are no graph inputs, and the results
are no graph outputs.

**At batch size 0**: `LSTM(x) -> LSTM(x with at least one sequence)`, its outputs cut back. onnxruntime 1.31 ends the whole
process at a recurrent node without sequences, where torch returns empty tensors. Only for domains that have such a size: it
costs a copy of the input and of the outputs. Packed input never needs it, since torch refuses to pack nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape
from onnxscript import opset18 as op

from anyshape.leaves.recurrent.recurrent import Kind, Network, State, cast_network, concat, is_zero, make_network
from anyshape.leaves.recurrent.step import native_layer, scan_layer

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

_DOUBLE, _FLOAT, _HALF = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.FLOAT16
_RECURRENT = ("LSTM", "GRU", "RNN")
_LENGTHS = 4
_BATCHED = (0, 5, 6)
"""The inputs that have a batch: X, initial_h and initial_c."""


def _translation(kind: Kind, states: int = 1) -> Callable[..., Sequence[ir.Value]]:
    """The nodes of an operator: inputs, its states, weights, lengths, has_biases, layers, bidirectional."""

    def translate(inputs: ir.Value, *given: Any) -> Sequence[ir.Value]:
        return _translate(make_network(kind, *given[states:]), inputs, given[:states])

    return translate


translate_lstm = _translation(Kind.LSTM, states=2)
translate_gru = _translation(Kind.GRU)
translate_rnn_tanh = _translation(Kind.RNN_TANH)
translate_rnn_relu = _translation(Kind.RNN_RELU)


def _translate(network: Network, inputs: ir.Value, initial: Sequence[ir.Value]) -> Sequence[ir.Value]:
    states = [State(value, is_zero(value)) for value in initial]
    by_scan = network.dtype == _DOUBLE or (network.is_projected and not states[0].is_zero)
    # In half precision a folded projection would be rounded to half precision too: an error that torch does not make.
    if network.dtype in (_DOUBLE, _FLOAT) or (network.dtype == _HALF and not network.is_projected):
        return _translate_layers(network, inputs, states, by_scan=by_scan)
    wide_states = [replace(state, value=op.Cast(state.value, to=_FLOAT)) for state in states]
    wide_input = op.Cast(inputs, to=_FLOAT)
    results = _translate_layers(cast_network(network, _FLOAT), wide_input, wide_states, by_scan=by_scan)
    return [op.Cast(result, to=network.dtype) for result in results]


def _translate_layers(
    network: Network, inputs: ir.Value, states: Sequence[State], *, by_scan: bool
) -> Sequence[ir.Value]:
    """The output of the last layer, then each final state, the layers stacked."""
    translate_layer = scan_layer if by_scan else native_layer
    finals: list[Sequence[ir.Value]] = []
    for index, cells in enumerate(network.layers):
        start, end = index * len(cells), (index + 1) * len(cells)
        own = states if len(network.layers) == 1 else [_layer_of(state, start, end) for state in states]
        inputs, layer_finals = translate_layer(network, cells, inputs, own)
        finals.append(layer_finals)
    return [inputs, *(concat(layers, axis=0) for layers in zip(*finals, strict=True))]


def _layer_of(state: State, start: int, end: int) -> State:
    return replace(state, value=op.Slice(state.value, [start], [end], [0]))


def translate_pack(inputs: ir.Value, lengths: ir.Value) -> Sequence[ir.Value]:
    counts = _counts(_first_size(inputs), lengths)
    sizes = op.ReduceSum(op.Cast(counts, to=ir.DataType.INT64), [1], keepdims=0)
    longest = op.ReduceMax(lengths, keepdims=1)
    return op.GatherND(inputs, _places(counts)), op.Slice(sizes, [0], longest, [0])


def translate_repack(inputs: ir.Value, lengths: ir.Value, rows: ir.Value | int) -> ir.Value:
    return op.GatherND(inputs, _places(_counts(_first_size(inputs), lengths)))


def translate_unpack(data: ir.Value, lengths: ir.Value, steps: ir.Value | int) -> ir.Value:
    wanted = _as_vector(steps)
    shape = op.Concat(wanted, op.Shape(lengths), op.Shape(data, start=1), axis=0)
    nothing = op.Expand(op.CastLike(0.0, data), shape)
    return op.ScatterND(nothing, _places(_counts(wanted, lengths)), data)


def translate_pad(inputs: ir.Value, lengths: ir.Value, value: float, steps: ir.Value | int | None) -> ir.Value:
    assert inputs.shape is not None
    rank = len(inputs.shape)
    given = _first_size(inputs)
    wanted = given if steps is None else _as_vector(steps)
    if steps is not None:
        missing = op.Max(op.Sub(wanted, given), _ints([0]))
        ends = op.Concat(_ints([0] * rank), missing, _ints([0] * (rank - 1)), axis=0)
        inputs = op.Pad(op.Slice(inputs, [0], wanted, [0]), ends)
    counts = op.Unsqueeze(_counts(wanted, lengths), list(range(2, rank))) if rank > 2 else _counts(wanted, lengths)
    return op.Where(counts, inputs, op.CastLike(value, inputs))


def _counts(steps: ir.Value, lengths: ir.Value) -> ir.Value:
    each = op.Range(0, op.Squeeze(steps, [0]), 1)
    return op.Less(op.Unsqueeze(each, [1]), op.Unsqueeze(lengths, [0]))


def _places(counts: ir.Value) -> ir.Value:
    return op.Transpose(op.NonZero(counts), perm=[1, 0])


def _first_size(value: ir.Value) -> ir.Value:
    return op.Shape(value, start=0, end=1)


def _as_vector(size: ir.Value | int) -> ir.Value:
    return _ints([size]) if isinstance(size, int) else op.Reshape(size, [1])


def _ints(values: Sequence[int]) -> ir.Value:
    return op.Constant(value_ints=values)


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
    missing = tape.op("Max", [tape.op("Sub", [_constant_ints(tape, 1), batch]), _constant_ints(tape, 0)])
    pads = tape.op("Concat", [_constant_ints(tape, 0, 0, 0, 0), missing, _constant_ints(tape, 0)], {"axis": 0})
    padded = [
        tape.op("Pad", [value, pads]) if place in _BATCHED and value is not None else value
        for place, value in enumerate(node.inputs)
    ]
    outputs = tape.op_multi_out(
        node.op_type, padded, node.attributes, num_outputs=len(node.outputs), version=node.version, name=node.name
    )
    for old, wide in zip(node.outputs, outputs, strict=True):
        # The batch is the last axis but one of every output.
        cut = tape.op("Slice", [wide, _constant_ints(tape, 0), batch, _constant_ints(tape, -2)])
        cut.name, cut.type, cut.shape = old.name, old.type, old.shape
        ir.convenience.replace_all_uses_with(old, cut, replace_graph_outputs=True)
    graph.insert_before(node, tape.nodes)
    graph.remove(node, safe=True)


def _constant_ints(tape: Tape, *values: int) -> ir.Value:
    return tape.op("Constant", [], {"value_ints": list(values)})
