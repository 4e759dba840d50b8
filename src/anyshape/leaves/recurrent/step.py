"""One recurrent layer in ONNX: by `LSTM`, `GRU` or `RNN`, or by a `Scan` over single steps in torch's own arithmetic.

torch has the gates of an LSTM as i f g o and of a GRU as r z n; ONNX as i o f c and z r h. Nodes that rearrange weights are
nodes like any other; `fold_leaf_weights` makes initializers of them. The body of a `Scan` takes states and one step's
features; weights are values of the graph around it, shared by all steps, with the gates in torch's order.

In a `Scan` a sequence that has ended keeps its state, so that the last state is that of its last step; run backwards, it
keeps its initial state until its own end. The input is multiplied step by step, not all at once before the scan:
onnxruntime 1.31 dies of `MatMul(Cast(Transpose(x)))`, which that would be for a batch-first network in bfloat16.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir as ir
import onnxscript.evaluator
from onnx_ir.tape import Tape
from onnxscript import opset18 as op

from anyshape.leaves.recurrent.recurrent import Cell, Kind, Network, State, concat, join_directions, stack

_GATES = {Kind.LSTM: (0, 3, 1, 2), Kind.GRU: (1, 0, 2), Kind.RNN_TANH: (0,), Kind.RNN_RELU: (0,)}
"""Which of torch's gates stands at each place of ONNX's."""


def native_layer(
    network: Network, cells: Sequence[Cell], inputs: ir.Value, states: Sequence[State]
) -> tuple[ir.Value, Sequence[ir.Value]]:
    """The layer's output, [steps, batch, features of all directions], and its final states."""
    weights = _layout(network.kind, [_fold_projection(cell) for cell in cells])
    lengths = None if network.lengths is None else op.Cast(network.lengths, to=ir.DataType.INT32)
    initial = [None if state.is_zero else state.value for state in states]
    direction = "forward" if len(cells) == 1 else "bidirectional"
    options = {"hidden_size": network.hidden_size, "direction": direction}
    if network.kind is Kind.LSTM:
        output, *finals = op.LSTM(inputs, *weights, lengths, *initial, **options)
    elif network.kind is Kind.GRU:
        output, *finals = op.GRU(inputs, *weights, lengths, *initial, linear_before_reset=1, **options)
    else:
        activations = [network.kind.activation] * len(cells)
        output, *finals = op.RNN(inputs, *weights, lengths, *initial, activations=activations, **options)
    if network.is_projected:
        output, finals = _project(cells, output, finals)
    return join_directions(output, len(cells), network.output_size), finals


def _project(cells: Sequence[Cell], output: ir.Value, finals: list[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    projection = stack([op.Transpose(cell.projection, perm=[1, 0]) for cell in cells])
    hidden, *others = finals
    return op.MatMul(output, projection), [op.MatMul(hidden, projection), *others]


def _fold_projection(cell: Cell) -> Cell:
    """h = P v, then R h  ->  (R P) v: the recurrence runs on v, before the projection. Needs h = 0 at the start."""
    if cell.projection is None:
        return cell
    return replace(cell, hidden_weight=op.MatMul(cell.hidden_weight, cell.projection))


def _layout(kind: Kind, cells: Sequence[Cell]) -> tuple[ir.Value, ir.Value, ir.Value | None]:
    """ONNX's W, R and B, the directions stacked."""
    gates = _GATES[kind]
    biases = [
        concat([_reorder(cell.input_bias, gates), _reorder(cell.hidden_bias, gates)], axis=0)
        for cell in cells
        if cell.input_bias is not None and cell.hidden_bias is not None
    ]
    return (
        stack([_reorder(cell.input_weight, gates) for cell in cells]),
        stack([_reorder(cell.hidden_weight, gates) for cell in cells]),
        stack(biases) if biases else None,
    )


def _reorder(value: ir.Value, gates: Sequence[int]) -> ir.Value:
    if len(gates) == 1:
        return value
    parts = op.Split(value, axis=0, num_outputs=len(gates))
    return op.Concat(*(parts[gate] for gate in gates), axis=0)


def build_step(kind: Kind, cell: Cell, dtype: ir.DataType, *, has_lengths: bool) -> ir.Graph:
    """Its inputs: the states, the features at this step, and whether each sequence goes on, where that is asked."""
    step = _Step(cell)
    names = ("h", "c") if kind is Kind.LSTM else ("h",)
    states = [_make_value(name, dtype) for name in names]
    features = _make_value("features", dtype)
    goes_on = _make_value("goes_on", ir.DataType.BOOL)
    new_states = _STEPS[kind](step, step.input_share(features), states)
    if has_lengths:
        new_states = [step.op("Where", goes_on, new, old) for new, old in zip(new_states, states, strict=True)]
    output = step.op("Identity", new_states[0])
    inputs = [*states, features, *([goes_on] if has_lengths else [])]
    graph = ir.Graph(inputs, [*new_states, output], nodes=step.nodes, name=f"{cell.name}_step")
    for number, value in enumerate([*inputs, *(output for node in step.nodes for output in node.outputs)]):
        value.name = f"{graph.name}_{number}"  # a name of the graph around it would hide that value from ONNX
    return graph


class _Step:
    """Records the nodes of one step of one cell."""

    def __init__(self, cell: Cell) -> None:
        self._tape = Tape()
        self._cell = cell
        self._input_weight = op.Transpose(cell.input_weight, perm=[1, 0])
        self._hidden_weight = op.Transpose(cell.hidden_weight, perm=[1, 0])
        self._projection = None if cell.projection is None else op.Transpose(cell.projection, perm=[1, 0])

    @property
    def nodes(self) -> Sequence[ir.Node]:
        return tuple(self._tape.nodes)

    def op(self, name: str, *inputs: ir.Value) -> ir.Value:
        return self._tape.op(name, list(inputs))

    def input_share(self, features: ir.Value) -> ir.Value:
        share = self.op("MatMul", features, self._input_weight)
        return share if self._cell.input_bias is None else self.op("Add", share, self._cell.input_bias)

    def hidden_share(self, hidden: ir.Value) -> ir.Value:
        share = self.op("MatMul", hidden, self._hidden_weight)
        return share if self._cell.hidden_bias is None else self.op("Add", share, self._cell.hidden_bias)

    def gates(self, value: ir.Value, count: int) -> Sequence[ir.Value]:
        return self._tape.op_multi_out("Split", [value], {"axis": -1, "num_outputs": count}, num_outputs=count)

    def project(self, hidden: ir.Value) -> ir.Value:
        return hidden if self._projection is None else self.op("MatMul", hidden, self._projection)


def _step_lstm(step: _Step, share: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    hidden, memory = states
    enter, forget, new, leave = step.gates(step.op("Add", share, step.hidden_share(hidden)), 4)
    kept = step.op("Mul", step.op("Sigmoid", forget), memory)
    memory = step.op("Add", kept, step.op("Mul", step.op("Sigmoid", enter), step.op("Tanh", new)))
    return [step.project(step.op("Mul", step.op("Sigmoid", leave), step.op("Tanh", memory))), memory]


def _step_gru(step: _Step, share: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    (hidden,) = states
    reset, update, new = step.gates(share, 3)
    hidden_reset, hidden_update, hidden_new = step.gates(step.hidden_share(hidden), 3)
    reset = step.op("Sigmoid", step.op("Add", reset, hidden_reset))
    update = step.op("Sigmoid", step.op("Add", update, hidden_update))
    new = step.op("Tanh", step.op("Add", new, step.op("Mul", reset, hidden_new)))
    return [step.op("Add", new, step.op("Mul", update, step.op("Sub", hidden, new)))]


def _step_rnn(activation: str) -> Callable[[_Step, ir.Value, Sequence[ir.Value]], list[ir.Value]]:
    def step_rnn(step: _Step, share: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
        return [step.op(activation, step.op("Add", share, step.hidden_share(states[0])))]

    return step_rnn


_STEPS = {
    Kind.LSTM: _step_lstm,
    Kind.GRU: _step_gru,
    Kind.RNN_TANH: _step_rnn("Tanh"),
    Kind.RNN_RELU: _step_rnn("Relu"),
}


def _make_value(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype))


def scan_layer(
    network: Network, cells: Sequence[Cell], inputs: ir.Value, states: Sequence[State]
) -> tuple[ir.Value, Sequence[ir.Value]]:
    """The layer's output, [steps, batch, features of all directions], and its final states."""
    goes_on = None if network.lengths is None else _goes_on(inputs, network.lengths)
    scanned = [inputs] if goes_on is None else [inputs, goes_on]
    outputs, finals = [], []
    for direction, cell in enumerate(cells):
        initial = [op.Squeeze(op.Slice(state.value, [direction], [direction + 1], [0]), [0]) for state in states]
        body = build_step(network.kind, cell, network.dtype, has_lengths=goes_on is not None)
        output, *final = _scan(body, [*initial, *scanned], len(initial), is_reverse=direction == 1)
        outputs.append(output)
        finals.append([op.Unsqueeze(state, [0]) for state in final])
    return concat(outputs, axis=2), [concat(directions, axis=0) for directions in zip(*finals, strict=True)]


def _goes_on(inputs: ir.Value, lengths: ir.Value) -> ir.Value:
    """Whether a sequence still goes on at a step: bool[steps, batch, 1]."""
    steps = op.Range(0, op.Squeeze(op.Shape(inputs, start=0, end=1), [0]), 1)
    return op.Unsqueeze(op.Less(op.Unsqueeze(steps, [1]), op.Unsqueeze(lengths, [0])), [2])


def _scan(body: ir.Graph, inputs: Sequence[ir.Value], states: int, *, is_reverse: bool) -> Sequence[ir.Value]:
    """The output of all steps, then the final states."""
    scanned = len(inputs) - states
    node = ir.node(
        "Scan",
        inputs,
        {
            "body": body,
            "num_scan_inputs": scanned,
            "scan_input_directions": [int(is_reverse)] * scanned,
            "scan_output_directions": [int(is_reverse)],
        },
        num_outputs=states + 1,
    )
    onnxscript.evaluator.default().nodes.append(node)  # torch.onnx's recorder; its own `Scan` has but one output
    *finals, output = node.outputs
    return output, *finals
