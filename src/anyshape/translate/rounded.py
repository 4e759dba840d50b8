"""bfloat16 inside of a model that takes and gives other types: computed in single precision, and rounded.

    bfloat16 y = MatMul(a, w)     ->     float y' = MatMul(Cast<float>(a), Cast<float>(w))    bfloat16 y = Cast<bfloat16>(y')

That is what hardware does with bfloat16, and what a runtime can do that has no kernels of that type, as onnxruntime has
not on the CPU (to 1.31). A model that is in bfloat16 from input to output stays so: whoever feeds it has such kernels.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.records.exported import Exported

_NARROW = ir.DataType.BFLOAT16
_KEPT = frozenset(
    {"Cast", "CastLike", "Identity", "If", "Loop", "Reshape", "Scan", "Shape", "Size", "Squeeze", "Unsqueeze"}
)


def round_inside(exported: Exported) -> Exported:
    """The model is changed in place, and given back."""
    model = exported.model
    if not any(value.dtype is _NARROW for value in (*model.graph.inputs, *model.graph.outputs)):
        for node in list(model.graph.all_nodes()):
            if node.domain == "" and node.op_type not in _KEPT:
                _round(node)
    return exported


def _round(node: ir.Node) -> None:
    narrow = [place for place, value in enumerate(node.inputs) if value is not None and value.dtype is _NARROW]
    if not narrow or node.graph is None:
        return
    for place in narrow:
        wide = _cast(node, node.inputs[place], ir.DataType.FLOAT, f"input_{place}")
        node.graph.insert_before(node, wide)
        node.replace_input_with(place, wide.outputs[0])
    for place, value in enumerate(node.outputs):
        if value.dtype is _NARROW:
            rounded = _cast(node, value, _NARROW, f"rounded_{place}")
            ir.convenience.replace_all_uses_with(value, rounded.outputs[0], replace_graph_outputs=True)
            rounded.replace_input_with(0, value)
            value.dtype = ir.DataType.FLOAT
            node.graph.insert_after(node, rounded)


def _cast(node: ir.Node, value: ir.Value | None, dtype: ir.DataType, name: str) -> ir.Node:
    cast = ir.node("Cast", [value], {"to": dtype.value}, name=f"{node.name}/{name}")
    cast.metadata_props.update(node.metadata_props)
    cast.outputs[0].name = f"{node.outputs[0].name}/{name}"
    cast.outputs[0].dtype, cast.outputs[0].shape = dtype, value.shape if value is not None else None
    return cast
