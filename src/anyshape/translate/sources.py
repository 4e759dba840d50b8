"""The user's line on every node of the file, and nothing of the machine that made it.

torch.onnx writes whole stack traces with absolute paths into each node: twice the file, and another file on another
machine. We keep `anyshape.source`, a file and a line.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.modules.frames import source_of_stack_text

SOURCE = "anyshape.source"
_TORCH_STACK = "pkg.torch.onnx.stack_trace"


def keep_sources(model: ir.Model) -> None:
    """torch's metadata and doc strings on nodes, values and graph  ->  `anyshape.source` on nodes."""
    model.doc_string = model.graph.doc_string = None
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()
    cache: dict[str, str] = {}
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        stack = node.metadata_props.get(_TORCH_STACK, "")
        if stack not in cache:
            source = source_of_stack_text(stack)
            cache[stack] = f"{source.file}:{source.line}" if source else ""
        node.metadata_props.clear()
        node.doc_string = None
        if cache[stack]:
            node.metadata_props[SOURCE] = cache[stack]
        for value in node.outputs:
            value.metadata_props.clear()
