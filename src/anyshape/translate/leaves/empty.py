"""Recurrent nodes at batch size 0: `LSTM(x)  ->  LSTM(x with at least one sequence)`, its answers cut back.

onnxruntime 1.31 ends the whole process at a recurrent node without sequences, where torch answers empty tensors. Only
for domains that have such a size: it costs a copy of the input and of the outputs. Packed input never needs it, since
torch refuses to pack nothing.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.tape import Tape

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
