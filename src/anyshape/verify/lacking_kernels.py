"""Which operators of a bfloat16 file onnxruntime has no kernel for on the CPU: its own message names the first one only.

Each operator that reads or gives bfloat16 is loaded alone, as a model of one node.
"""

from __future__ import annotations

from typing import Any

from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.runtime.session import Session
from anyshape.verify.file_copies import every_node

_BFLOAT16 = 16


def find_lacking_kernels(path: str) -> tuple[str, ...]:
    """The types of such operators in the order of their names; empty where the types inside the file are unknown."""
    import onnx

    try:
        model = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    except Exception:  # a model that is too large for one message
        return ()
    types = dict(_types(model.graph))
    found: set[str] = set()
    tried: set[tuple[Any, ...]] = set()
    for node in every_node(model.graph):
        names = [*filter(None, node.input), *node.output]
        key = (node.domain, node.op_type, *(types.get(name) for name in names))
        has_graph = any(attribute.HasField("g") for attribute in node.attribute)
        if _BFLOAT16 not in key or None in key or has_graph or key in tried:
            continue
        tried.add(key)
        if _is_unsupported(_one_node(model, node, types)):
            found.add(node.op_type)
    return tuple(sorted(found))


def _types(graph: Any) -> Any:
    """Name and element type of each value, those of inner graphs included."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name, value.type.tensor_type.elem_type or None
    yield from ((tensor.name, tensor.data_type) for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _types(attribute.g)


def _one_node(model: Any, node: Any, types: dict[str, Any]) -> bytes:
    """The node as a model, its values without shapes."""
    from onnx import helper

    inputs, outputs = (
        [helper.make_tensor_value_info(name, types[name], None) for name in dict.fromkeys(names) if name]
        for names in (node.input, node.output)
    )
    graph = helper.make_graph([node], "one", inputs, outputs)
    made = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    data: bytes = made.SerializeToString()
    return data


def _is_unsupported(model: bytes) -> bool:
    try:
        Session(model, threads=1, optimize=False)
    except RuntimeRejected as error:
        return error.unsupported
    return False
