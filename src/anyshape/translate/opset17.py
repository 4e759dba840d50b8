"""A model of opset 18 rewritten for opset 17: attributes in the place of inputs, and a refusal for what 17 lacks.

ReduceMax(x, axes)          ->  ReduceMax(x, axes=...)           where the axes are constants
Pad(x, pads, value, axes)   ->  Pad(x, pads of all axes, value)  where pads and axes are constants
Split(x, num_outputs=n)     ->  Split(x)                         where the parts are equal
Resize, LpPool              ->  without attributes that have their default
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

OPSET = 17

_NEW = ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Col2Im", "GroupNormalization", "Mish")
_NEW_DEFAULTS: dict[str, dict[str, object]] = {
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": "stretch", "axes": None},
    "LpPool": {"ceil_mode": 0, "dilations": None},
}


class Inexpressible(Exception):
    """What opset 17 cannot express, as a message."""


def lower_to_17(model: ir.Model) -> None:
    """Changes the model in place. Raises Inexpressible, and leaves the model half changed, where 17 has no word for it."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.domain != "":
            continue
        if node.op_type in _NEW:
            raise Inexpressible(f"{node.op_type} came with opset 18.")
        if node.op_type.startswith("Reduce") and node.op_type != "ReduceSum":  # that one had an input before
            axes_as_attribute(node, 18)
        elif node.op_type == "Pad" and len(node.inputs) > 3 and node.inputs[3] is not None:
            _pad_all_axes(model, node)
        elif node.op_type == "Split" and "num_outputs" in node.attributes:
            _split_by_sizes(node)
        elif node.op_type.startswith("Scatter") and attribute_of(node, "reduction") in ("max", "min"):
            raise Inexpressible(
                f"{node.op_type} with the reduction {attribute_of(node, 'reduction')} came with opset 18."
            )
        elif node.op_type in _NEW_DEFAULTS:
            _drop_defaults(node)
    for graph in (model.graph, *subgraphs(model)):
        graph.opset_imports[""] = OPSET


def subgraphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The graphs of If, Loop and Scan in a model, nested ones too."""
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for attribute in node.attributes.values():
            if isinstance(attribute, ir.Attr) and attribute.type == ir.AttributeType.GRAPH:
                yield attribute.as_graph()


def attribute_of(node: ir.Node, name: str) -> object:
    """The value of an attribute; None where the node has not got it."""
    found = node.attributes.get(name)
    return found.value if isinstance(found, ir.Attr) else None


def constant_integers(value: ir.Value | None) -> list[int] | None:
    """The numbers of a constant; None for a value that is known at run time only."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]


def axes_as_attribute(node: ir.Node, since: int) -> None:
    """Constant axes as an attribute; `since` is the opset with which this operator takes them as an input."""
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    numbers = constant_integers(axes) if axes is not None else []
    if numbers is None:
        raise Inexpressible(f"{node.op_type} over axes that are computed came with opset {since}.")
    if not numbers and attribute_of(node, "noop_with_empty_axes"):
        raise Inexpressible(f"{node.op_type} over no axis came with opset {since}.")
    node.attributes.pop("noop_with_empty_axes", None)
    if numbers:
        node.attributes["axes"] = ir.AttrInt64s("axes", numbers)
    node.resize_inputs(1)


def _pad_all_axes(model: ir.Model, node: ir.Node) -> None:
    data, pads, axes = node.inputs[0], constant_integers(node.inputs[1]), constant_integers(node.inputs[3])
    if data is None or data.shape is None or pads is None or axes is None:
        raise Inexpressible("Pad of chosen axes by computed sizes came with opset 18.")
    of_rank = len(data.shape)
    whole = [0] * (2 * of_rank)
    for number, axis in enumerate(axes):
        whole[axis % of_rank], whole[of_rank + axis % of_rank] = pads[number], pads[len(axes) + number]
    node.replace_input_with(1, _initializer(model, whole))
    node.resize_inputs(3)


def _split_by_sizes(node: ir.Node) -> None:
    """Opset 17 splits into equal parts by itself; 18's last part may be shorter, and needs its sizes written out."""
    data, count = node.inputs[0], len(node.outputs)
    axis = attribute_of(node, "axis")
    size = data.shape[axis if isinstance(axis, int) else 0] if data is not None and data.shape is not None else None
    if not isinstance(size, int) or size % count:
        raise Inexpressible(f"Split of an open size into {count} parts came with opset 18.")
    node.attributes.pop("num_outputs")


def _drop_defaults(node: ir.Node) -> None:
    for name, default in _NEW_DEFAULTS[node.op_type].items():
        value = attribute_of(node, name)
        if value is not None and value != default and not (name == "dilations" and _is_ones(value)):
            raise Inexpressible(f"{node.op_type} with {name} came with opset 18.")
        node.attributes.pop(name, None)


def _is_ones(value: object) -> bool:
    """Dilations of 1 are the default."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(each == 1 for each in value)


def _initializer(model: ir.Model, numbers: list[int]) -> ir.Value:
    name = f"pads_{'_'.join(str(number) for number in numbers)}"
    known = model.graph.initializers.get(name)
    if known is not None:
        return known
    tensor = ir.Tensor(np.array(numbers, dtype=np.int64), name=name)
    value = ir.Value(
        name=name, type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([len(numbers)]), const_value=tensor
    )
    model.graph.register_initializer(value)
    return value
