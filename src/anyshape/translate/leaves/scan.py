"""One layer by ONNX's `Scan`: torch's own arithmetic, step by step, in any precision.

The input's share of the gates is computed for all steps at once, before the scan. A sequence that has ended keeps its
state, so that the last state is that of its last step; run backwards, it keeps its initial state until its own end.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import onnxscript.evaluator
from onnxscript import opset18 as op

from anyshape.translate.leaves.network import Cell, Network, State, concat
from anyshape.translate.leaves.step import build_step


def scan_layer(
    network: Network, cells: Sequence[Cell], input: ir.Value, states: Sequence[State]
) -> tuple[ir.Value, Sequence[ir.Value]]:
    """The layer's output, [steps, batch, features of all directions], and its final states."""
    goes_on = None if network.lengths is None else _goes_on(input, network.lengths)
    outputs, finals = [], []
    for direction, cell in enumerate(cells):
        initial = [op.Squeeze(op.Slice(state.value, [direction], [direction + 1], [0]), [0]) for state in states]
        body = build_step(network.kind, cell, network.dtype, has_lengths=goes_on is not None)
        output, *final = _scan(body, [*initial, *_scanned(cell, input, goes_on)], len(initial), is_reverse=direction == 1)
        outputs.append(output)
        finals.append([op.Unsqueeze(state, [0]) for state in final])
    return concat(outputs, axis=2), [concat(directions, axis=0) for directions in zip(*finals, strict=True)]


def _goes_on(input: ir.Value, lengths: ir.Value) -> ir.Value:
    """Whether a sequence still goes on at a step: bool[steps, batch, 1]."""
    steps = op.Range(0, op.Squeeze(op.Shape(input, start=0, end=1), [0]), 1)
    return op.Unsqueeze(op.Less(op.Unsqueeze(steps, [1]), op.Unsqueeze(lengths, [0])), [2])


def _scanned(cell: Cell, input: ir.Value, goes_on: ir.Value | None) -> list[ir.Value]:
    """What each step gets a slice of."""
    share = op.MatMul(input, op.Transpose(cell.input_weight, perm=[1, 0]))
    share = share if cell.input_bias is None else op.Add(share, cell.input_bias)
    return [share] if goes_on is None else [share, goes_on]


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
