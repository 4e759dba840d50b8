"""One layer by ONNX's own `LSTM`, `GRU` or `RNN`.

torch has the gates of an LSTM as i f g o and of a GRU as r z n; ONNX as i o f c and z r h. What is done to weights here
are nodes like any other; `fold_leaf_weights` makes initializers of them.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.leaves.recurrent.network import Cell, Kind, Network, State, concat, join_directions, stack

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
