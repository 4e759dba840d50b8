"""Nodes that take the place of one node of a finished graph."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir

INT64 = ir.DataType.INT64


class NodeWriter:
    """Nodes that take the place of one node, with its line."""

    def __init__(self, node: ir.Node) -> None:
        self._node, self._count = node, itertools.count()
        self.nodes: list[ir.Node] = []

    def add(
        self,
        op_type: str,
        *inputs: ir.Value,
        dtype: ir.DataType = INT64,
        outputs: int = 1,
        called: str = "",
        **given: int,
    ) -> ir.Value:
        """The first output of a new node, which may have a name of its own."""
        name = f"order_{next(self._count)}"
        node = ir.node(op_type, inputs, given, num_outputs=outputs, name=f"{self._node.name}/{called or name}")
        node.metadata_props.update(self._node.metadata_props)
        for place, value in enumerate(node.outputs):
            value.name = f"{self._node.outputs[0].name}/{name}{place or ''}"
            value.dtype = dtype
        self.nodes.append(node)
        return node.outputs[0]

    def constant(self, numbers: int | list[int], dtype: ir.DataType = INT64) -> ir.Value:
        tensor = ir.Tensor(np.array(numbers, dtype.numpy()))
        value = self.add("Constant", dtype=dtype)
        value.producer().attributes["value"] = ir.AttrTensor("value", tensor)  # type: ignore[union-attr]
        value.const_value = tensor
        return value

    def larger(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.add("Where", self.add("Less", one, other, dtype=ir.DataType.BOOL), other, one)

    def smaller(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.add("Where", self.add("Less", other, one, dtype=ir.DataType.BOOL), other, one)
