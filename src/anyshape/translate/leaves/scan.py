"""One layer by ONNX's `Scan`: torch's own arithmetic, step by step, in any precision.

A sequence that has ended keeps its state, so that the last state is that of its last step; run backwards, it keeps its
initial state until its own end. The input is multiplied step by step, not all at once before the scan: onnxruntime 1.31
dies of `MatMul(Cast(Transpose(x)))`, which that would be for a batch-first network in bfloat16.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import onnxscript.evaluator
from onnxscript import opset18 as op

from anyshape.translate.leaves.network import Cell, Network, State, concat
from anyshape.translate.leaves.step import build_step


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
