"""The length of an input that is only read as a length -> a number: no vector of that length is made.

Shape(value_1)            ->   Identity(number)
Reshape(value_1, zero)    ->   Add(number, zero), read further on: a gate that waits for checks
"""

from __future__ import annotations

import onnx_ir as ir


def replace_length(given: ir.Value, number: ir.Value) -> None:
    """Put `number`, an int64 vector of one, wherever a graph reads the length of its input `given`.

    Raises TypeError where the graph reads anything else of it.
    """
    pending = [(given, number)]
    while pending:
        value, length = pending.pop()
        for use in tuple(value.uses()):
            node = use.node
            output = node.outputs[0]
            if node.op_type == "Shape":
                _rewrite(node, "Identity", length)
            elif node.op_type == "Identity" and not output.is_graph_output():
                pending.append((output, length))
            elif node.op_type == "Reshape" and use.idx == 0:
                _rewrite(node, "Add", length)
                pending.append((output, output))
            else:
                raise TypeError(f"a number is read as a tensor by {node.op_type}")


def _rewrite(node: ir.Node, op_type: str, number: ir.Value) -> None:
    node.op_type = op_type
    node.attributes.clear()
    node.replace_input_with(0, number)
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
