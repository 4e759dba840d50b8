"""Custom nodes of a model, and the bytes of its tensors as a file holds them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir


_FASTER_IN_TORCH = ("float16", "float32", "float64")
_RUNTIMES_OWN = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def find_needs(model: ir.Model) -> tuple[str, ...]:
    """`mylib::Scale` for each, in the order of their names; functions that the file itself has are not among them."""
    import onnx_ir as ir

    own = {(function.domain, function.name) for function in model.functions.values()}
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    nodes = (node for graph in graphs for node in ir.traversal.RecursiveGraphIterator(graph))
    needed = {
        f"{node.domain}::{node.op_type}"
        for node in nodes
        if node.domain not in _RUNTIMES_OWN and (node.domain, node.op_type) not in own
    }
    return tuple(sorted(needed))


def find_needs_of_proto(model: onnx.ModelProto) -> tuple[str, ...]:
    """The same of a file's own form, which onnx-ir may refuse: torch writes outputs that are named like inputs."""
    own = {(function.domain, function.name) for function in model.functions}
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    needed = set()
    while nodes:
        node = nodes.pop()
        nodes += [
            inner for attribute in node.attribute for graph in (attribute.g, *attribute.graphs) for inner in graph.node
        ]
        if node.domain not in _RUNTIMES_OWN and (node.domain, node.op_type) not in own:
            needed.add(f"{node.domain}::{node.op_type}")
    return tuple(sorted(needed))


def bytes_of(tensor: ir.TensorProtocol) -> bytes | memoryview:
    """Little-endian, row after row: a view of the tensor's own memory if it is contiguous. Not for strings.

    Elements of less than a byte are packed, which takes a copy.
    """
    from anyshape.runtime.dtypes import raw  # loads numpy, which reading a contract does without

    if tensor.dtype.bitwidth < 8 or sys.byteorder == "big":
        return tensor.tobytes()
    array = tensor.numpy()
    is_transposed = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    if is_transposed and array.flags.writeable and array.dtype in _FASTER_IN_TORCH and "torch" in sys.modules:
        import torch

        array = torch.from_numpy(array).contiguous().numpy()  # half of numpy's time
    return raw(array).data
