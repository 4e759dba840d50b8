"""Nodes that compute constants from constants (folded shapes, masks, ranges): their values, as far as these are small."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Number
from anyshape.repair.known_shapes import Known, constant_known
from anyshape.runtime import RunError, Session

_IR_VERSION = 8
_MOST_TAKEN = 2**20
_MOST_MADE = 2**22
_RANDOM = (
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
    "Dropout",
)


def find_constant(
    node: ir.Node, known: Mapping[ir.Value, Known], kept: MutableMapping[ir.Value, Known]
) -> Sequence[Known] | None:
    """What the node gives, if it takes small constants alone; None otherwise. `kept` has those of earlier passes."""
    if all(value in kept for value in node.outputs):
        return [kept[value] for value in node.outputs]
    inputs = [known.get(value) for value in node.inputs if value is not None]
    if node.op_type in _RANDOM or node.domain not in ("", "ai.onnx") or _has_graph(node):
        return None
    if any(each is None or not each.is_constant for each in inputs):
        return None
    taken = [each for each in inputs if each is not None]
    if sum(_count(each) for each in taken) > _MOST_TAKEN or _made(node, taken) > _MOST_MADE:
        return None
    arrays = _evaluated(node, [None if value is None else known[value].array() for value in node.inputs])
    if arrays is None:
        return None
    found = [constant_known(array) for array in arrays]
    kept.update(zip(node.outputs, found, strict=False))
    return found


def _has_graph(node: ir.Node) -> bool:
    return any(each.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for each in node.attributes.values())


def _count(known: Known) -> int:
    return prod(axis.value for axis in known.axes if isinstance(axis, Number))


def _made(node: ir.Node, inputs: Sequence[Known]) -> int:
    """An upper bound for the elements that the node makes."""
    counts = [_count(each) for each in inputs]
    sizes = inputs if node.op_type in ("ConstantOfShape", "Range") else inputs[1:]
    values = [each.value for known in sizes if known.ints is not None for each in np.asarray(known.ints).reshape(-1)]
    if node.op_type in ("ConstantOfShape", "Expand", "Tile", "Resize", "Upsample", "Pad", "OneHot", "Range"):
        return max(prod([max(abs(each), 1) for each in values]), 1) * max(counts[:1] or [1])
    try:
        return prod(np.broadcast_shapes(*(tuple(_count(Known((axis,))) for axis in each.axes) for each in inputs)))
    except ValueError:
        return max(prod(max(count, 1) for count in counts[:2]), sum(counts))


def _evaluated(node: ir.Node, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]] | None:
    """The outputs by ONNX's own reference, None where that does not know the operator."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    proto = ir.to_proto(node)
    names = [name for name in proto.input if name]
    feeds = {str(value.name): array for value, array in zip(node.inputs, arrays, strict=True) if value is not None}
    opset = node.version or (node.graph.opset_imports.get("", 18) if isinstance(node.graph, ir.Graph) else 18)
    graph = onnx.helper.make_graph(
        [proto],
        "constant",
        [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype), None)
            for name in dict.fromkeys(names)
        ],
        [onnx.helper.make_empty_tensor_value_info(name) for name in proto.output if name],
    )
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=imports)
    found: Any
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # an operator or a type that the reference lacks
        found = _by_runtime(model, feeds)
    is_known = found is not None and all(isinstance(each, (np.ndarray, np.generic)) for each in found)
    return [np.asarray(each) for each in found] if found is not None and is_known else None


def _by_runtime(model: Any, feeds: dict[str, Any]) -> list[Any] | None:
    try:
        return list(Session(model.SerializeToString(), threads=1).run(feeds))
    except RunError:
        return None
