"""One step of a recurrent cell as the body of an ONNX `Scan`: states and one step's features in, states and output out.

Weights are values of the graph around it, shared by all steps. The gates stand in torch's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from onnx_ir.tape import Tape
from onnxscript import opset18 as op

from anyshape.translate.leaves.network import Cell, Kind


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
