"""Forms that a file may not have: operators that opset 17 lacks, and types for which onnxruntime has no kernels.

    ReduceMax(x, axes)          ->  ReduceMax(x, axes=...)           where the axes are constants
    Pad(x, pads, value, axes)   ->  Pad(x, pads of all axes, value)  where pads and axes are constants
    Split(x, num_outputs=n)     ->  Split(x)                         where the parts are equal
    Resize, LpPool              ->  without attributes that have their default

    uint8 y = Neg(uint8 x)     ->     int32 y' = Neg(Cast<int32>(x))        uint8 y = Cast<uint8>(y')
    bool y = Add(bool a, b)    ->     int32 y' = Add(Cast<int32>(a), ...)   bool y = Cast<bool>(y')

The cast back drops the upper bits, so sums and products wrap around as in torch; a boolean is true where the number is not 0,
so a sum is "or" and a product "and", as in torch. Rounding an integer is the integer itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.records.export import Exported

OPSET = 17

_NEW = ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Col2Im", "GroupNormalization", "Mish")
_NEW_DEFAULTS: dict[str, dict[str, object]] = {
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": "stretch", "axes": None},
    "LpPool": {"ceil_mode": 0, "dilations": None},
}
_WHOLE = (
    ir.DataType.BOOL,
    ir.DataType.UINT8,
    ir.DataType.INT8,
    ir.DataType.UINT16,
    ir.DataType.INT16,
    ir.DataType.UINT32,
    ir.DataType.INT32,
    ir.DataType.INT64,
)
_ROUNDING = ("Floor", "Ceil", "Round")  # nothing to do for an integer
_TESTS = ("IsNaN", "IsInf")  # whose answer needs no precision
_WIDE = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_BITS = {ir.DataType.INT32: 31, ir.DataType.INT64: 63, ir.DataType.FLOAT: 24, ir.DataType.DOUBLE: 53}  # exact integers
# Types that ONNX has for a type variable of an operator, and onnxruntime has not on the CPU (to 1.31).
_SHORT = frozenset({"uint16", "int16"})
_TO_UINT32 = frozenset({"uint8", "int8", "uint16", "int16", "uint32"})
_NO_KERNEL: dict[tuple[str, str], frozenset[str]] = {
    ("ArgMax", "T"): frozenset({"uint16", "int16", "uint32"}),
    ("ArgMin", "T"): frozenset({"uint16", "int16", "uint32"}),
    ("Clip", "T"): _SHORT,
    ("CumSum", "T"): frozenset({"uint32"}),
    ("Einsum", "T"): _TO_UINT32,
    ("Max", "T"): _SHORT,
    ("Min", "T"): _SHORT,
    ("NonZero", "T"): frozenset({"int8", "uint16", "int16", "uint32"}),
    ("OneHot", "T1"): _TO_UINT32,
    ("OneHot", "T2"): _TO_UINT32,
    ("OneHot", "T3"): _TO_UINT32 | {"bool"},
    ("Pad", "T"): _SHORT,
    ("Pow", "T1"): _TO_UINT32,
    ("Relu", "T"): frozenset({"int16", "int64"}),
    ("TopK", "T"): frozenset({"uint16", "uint32"}),
    ("Trilu", "T"): _TO_UINT32,
    ("Unique", "T"): frozenset({"bool", "uint8", "uint16", "int16", "uint32", "int32"}),
    ("Where", "T"): _SHORT | {"bool"},
    **{
        (f"Reduce{kind}", "T"): frozenset({"uint32"})
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
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


def widen_types(exported: Exported) -> Exported:
    """Compute in a wider type what has no operator in its own. The model is changed in place, and given back."""
    model = exported.model
    opset = model.opset_imports.get("", exported.opset)
    for node in list(model.graph.all_nodes()):
        schema = _schema(node.op_type, opset) if node.domain == "" else None
        if schema is not None:
            for variable in dict.fromkeys(each.type_str for each in schema.inputs):
                _widen(node, schema, variable)
    return exported


@functools.cache
def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


def _widen(node: ir.Node, schema: onnx.defs.OpSchema, variable: str) -> None:
    """Cast the inputs of one type variable, and its outputs back, where their type has no operator and a wider one has."""
    places = [
        place for place, each in enumerate(node.inputs) if each is not None and _is(schema.inputs, place, variable)
    ]
    types = {value.type for place in places if (value := node.inputs[place]) is not None}
    kind = types.pop() if len(types) == 1 else None
    if not isinstance(kind, ir.TensorType):
        return
    own, known = kind.dtype, _types(schema, variable)
    results = [value for place, value in enumerate(node.outputs) if _is(schema.outputs, place, variable)]
    for value in results:
        value.type = value.type or ir.TensorType(own)  # shape inference leaves some types out
    if own not in _WHOLE or not known or _name(own) in known or node.graph is None:
        return
    if node.op_type in _ROUNDING:
        node.op_type = "Identity"
        return
    bits = 1 if node.op_type in _TESTS else own.bitwidth
    wide = next((each for each in _WIDE if _name(each) in known and _BITS[each] >= bits), None)
    if wide is None:
        return
    for place in places:
        cast = make_cast(node, node.inputs[place], wide, f"wide_{place}")
        node.graph.insert_before(node, cast)
        node.replace_input_with(place, cast.outputs[0])
    for place, value in enumerate(results):
        _cast_back(node, value, wide, f"narrow_{place}")


def _cast_back(node: ir.Node, value: ir.Value, wide: ir.DataType, name: str) -> None:
    assert node.graph is not None and value.dtype is not None
    narrow = make_cast(node, value, value.dtype, name)
    ir.convenience.replace_all_uses_with(value, narrow.outputs[0], replace_graph_outputs=True)
    narrow.replace_input_with(0, value)
    value.type = ir.TensorType(wide)  # a new one: values may share theirs
    node.graph.insert_after(node, narrow)


def _types(schema: onnx.defs.OpSchema, variable: str) -> frozenset[str]:
    """The types that the operator has in ONNX and in onnxruntime; empty for a fixed one, such as `tensor(int64)`."""
    allowed = {
        each.removeprefix("tensor(").removesuffix(")")
        for constraint in schema.type_constraints
        if constraint.type_param_str == variable
        for each in constraint.allowed_type_strs
    }
    return frozenset(allowed) - _NO_KERNEL.get((schema.name, variable), frozenset())


def _is(formal: Sequence[onnx.defs.OpSchema.FormalParameter], place: int, variable: str) -> bool:
    """Whether the schema gives this operand the type variable; further operands of a variadic operator have the last one."""
    return bool(formal) and formal[min(place, len(formal) - 1)].type_str == variable


def _name(dtype: ir.DataType) -> str:
    return dtype.name.lower()


def make_cast(node: ir.Node, value: ir.Value | None, dtype: ir.DataType, name: str) -> ir.Node:
    """A Cast of a value that this node reads or gives, with its line; `name` is added to the names of the node."""
    cast = ir.node("Cast", [value], {"to": dtype.value}, name=f"{node.name}/{name}")
    cast.metadata_props.update(node.metadata_props)
    cast.outputs[0].name = f"{node.outputs[0].name}/{name}"
    cast.outputs[0].dtype, cast.outputs[0].shape = dtype, value.shape if value is not None else None
    return cast
