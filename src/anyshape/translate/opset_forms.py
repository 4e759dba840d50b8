"""Forms of operators in older opsets: each function writes one node in the forms of the opset before.

A function gets the node and a tape for new nodes. It returns the values that replace the outputs of the node, or None where
it changed the node in place. It raises Inexpressible where the older opset cannot have it.

LayerNormalization(x, s, b)   ->  (x - mean) / sqrt(variance + epsilon) * s + b
Shape(x, start, end)          ->  Slice(Shape(x), start, end)
Split(x, sizes)               ->  Slice(x, ends - sizes, ends) for each part, ends = CumSum(sizes), where sizes are computed
Softmax(x, axis)              ->  Transpose, Softmax of the last axis, Transpose
Trilu(x, k)                   ->  Where(column - row <= k, x, 0), or >= k
Max(a, b) of integers         ->  Where(a > b, a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.translate.lacking_forms import Inexpressible, attribute_of, axes_as_attribute, constant_integers

_LARGEST = np.iinfo(np.int64).max
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
_TAKES_MORE = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}

Tape = ir.tape.Tape
Values = Sequence[ir.Value]
_HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def without_defaults(**defaults: object) -> Callable[[ir.Node, Tape], None]:
    """A form that removes attributes which have their default."""

    def form(node: ir.Node, tape: Tape) -> None:
        for name, default in defaults.items():
            if attribute_of(node, name) == default:
                node.attributes.pop(name, None)

    return form


def layer_norm(node: ir.Node, tape: Tape) -> Values:
    """The steps of the definition; half precision is computed in float32, as there."""
    x, scale, bias = (*node.inputs, None)[:3]
    if x is None or scale is None or any(value.uses() for value in node.outputs[1:]):
        raise Inexpressible("LayerNormalization that returns its mean came with opset 17.")
    first = attribute_of(node, "axis")
    axes = list(range(first, _rank(node, x) if first >= 0 else 0)) if isinstance(first, int) else [-1]
    wide = tape.op("Cast", [x], {"to": ir.DataType.FLOAT.value}) if x.dtype in _HALVES else x
    apart = tape.op("Sub", [wide, tape.op("ReduceMean", [wide], {"axes": axes, "keepdims": 1})])
    variance = tape.op("ReduceMean", [tape.op("Mul", [apart, apart])], {"axes": axes, "keepdims": 1})
    epsilon = attribute_of(node, "epsilon")
    least = _constant(tape, np.array(1e-5 if epsilon is None else epsilon, _numpy_float(x.dtype)))
    normal = tape.op("Div", [apart, tape.op("Sqrt", [tape.op("Add", [variance, least])])])
    if x.dtype in _HALVES:
        normal = tape.op("Cast", [normal], {"to": _type_of(node, x).value})
    scaled = tape.op("Mul", [normal, scale])
    return [scaled if bias is None else tape.op("Add", [scaled, bias])]


def part_of_shape(node: ir.Node, tape: Tape) -> Values | None:
    start, end = attribute_of(node, "start"), attribute_of(node, "end")
    if start is None and end is None:
        return None
    starts = _constant(tape, np.array([start or 0], np.int64))
    ends = _constant(tape, np.array([_LARGEST if end is None else end], np.int64))
    return [tape.op("Slice", [tape.op("Shape", [_given(node, 0)]), starts, ends])]


def cast_like(node: ir.Node, tape: Tape) -> Values:
    return [tape.op("Cast", [_given(node, 0)], {"to": _type_of(node, _given(node, 1)).value})]


def batch_norm(node: ir.Node, tape: Tape) -> None:
    if attribute_of(node, "training_mode"):
        raise Inexpressible("BatchNormalization in training mode came with opset 14.")
    node.attributes.pop("training_mode", None)


def reshape(node: ir.Node, tape: Tape) -> Values | None:
    """Without allowzero a size of 0 is the input's size of that axis, which has to be 0 as well where nothing is left.

    Reshape(x, sizes, allowzero=1)  ->  Reshape(Slice(Reshape(x, [-1, 1, 1]), all sizes 0 where x is empty), sizes)
    """
    x, shape = _given(node, 0), _given(node, 1)
    is_needed = bool(attribute_of(node, "allowzero"))
    node.attributes.pop("allowzero", None)
    sizes = constant_integers(shape)
    if not is_needed or (sizes is not None and 0 not in sizes):
        return None
    rank = _rank(node, node.outputs[0])
    column = tape.op("Reshape", [x, _constant(tape, np.array([-1] + [1] * (rank - 1)))])
    size = tape.op("Size", [x])
    size.dtype = ir.DataType.INT64
    count = tape.op("Min", [size, _constant(tape, np.array(1))])
    ends = tape.op("Expand", [count, _constant(tape, np.array([rank - 1]))])
    axes = _constant(tape, np.arange(1, rank))
    emptied = tape.op("Slice", [column, _constant(tape, np.zeros(rank - 1, np.int64)), ends, axes])
    return [tape.op("Reshape", [emptied if rank > 1 else column, shape])]


def hard_swish(node: ir.Node, tape: Tape) -> Values:
    x = _given(node, 0)
    return [tape.op("Mul", [x, tape.op("HardSigmoid", [x], {"alpha": 1 / 6, "beta": 0.5})])]


def triangle(node: ir.Node, tape: Tape) -> Values:
    x = _given(node, 0)
    is_upper = attribute_of(node, "upper")
    shift = node.inputs[1] if len(node.inputs) > 1 else None
    zero, one = _constant(tape, np.array(0)), _constant(tape, np.array(1))

    def positions(axis: int, others: int) -> ir.Value:
        size = tape.op("Gather", [tape.op("Shape", [x]), _constant(tape, np.array(axis))])
        axes = _constant(tape, np.array([others]))
        return tape.op("Unsqueeze", [tape.op("Range", [zero, size, one]), axes])

    distance = tape.op("Sub", [positions(-1, 0), positions(-2, 1)])
    offset = zero if shift is None else tape.op("Reshape", [shift, _constant(tape, np.array([1]))])
    is_out = tape.op("Less" if is_upper is None or is_upper else "Greater", [distance, offset])
    nothing = _constant(tape, np.zeros((), _type_of(node, x).numpy()))
    return [tape.op("Where", [is_out, nothing, x])]


def fixed_axes(node: ir.Node, tape: Tape) -> None:
    axes_as_attribute(node, 13)


def split(node: ir.Node, tape: Tape) -> Values | None:
    sizes = node.inputs[1] if len(node.inputs) > 1 else None
    if sizes is None:
        return None
    numbers = constant_integers(sizes)
    if numbers is not None:
        node.attributes["split"] = ir.AttrInt64s("split", numbers)
        node.resize_inputs(1)
        return None
    ends = tape.op("CumSum", [sizes, _constant(tape, np.array(0))])
    starts = tape.op("Sub", [ends, sizes])
    axis = _constant(tape, np.array([attribute_of(node, "axis") or 0]))

    def part(number: int) -> ir.Value:
        at = _constant(tape, np.array([number]))
        return tape.op("Slice", [_given(node, 0), tape.op("Gather", [starts, at]), tape.op("Gather", [ends, at]), axis])

    return [part(number) for number in range(len(node.outputs))]


def softmax(node: ir.Node, tape: Tape) -> Values | None:
    """Before opset 13 all axes from `axis` on are one: only the last axis has the same meaning."""
    x, given = _given(node, 0), attribute_of(node, "axis")
    axis = given if isinstance(given, int) else -1
    if axis == -1 or axis == _rank(node, x) - 1:
        node.attributes["axis"] = ir.AttrInt64("axis", -1)
        return None
    rank = _rank(node, x)
    order = [number for number in range(rank) if number != axis % rank] + [axis % rank]
    turned = tape.op(node.op_type, [tape.op("Transpose", [x], {"perm": order})], {"axis": -1})
    return [tape.op("Transpose", [turned], {"perm": [order.index(number) for number in range(rank)]})]


def resize(node: ir.Node, tape: Tape) -> None:
    """roi and scales are not optional before opset 13, and may be empty."""
    inputs = [*node.inputs, None, None][:3]
    if len(node.inputs) < 3:
        node.resize_inputs(3)
    for position in (1, 2):
        if inputs[position] is None:
            node.replace_input_with(position, _constant(tape, np.array([], np.float32)))


def constant_value(node: ir.Node, tape: Tape) -> None:
    for name, dtype in _TAKES_MORE.items():
        number: Any = attribute_of(node, name)
        if number is not None:
            node.attributes.pop(name)
            node.attributes["value"] = ir.AttrTensor("value", ir.tensor(np.array(number, dtype)))


def at_least(node: ir.Node, tape: Tape) -> Values:
    return _or_equal(node, tape, "Greater")


def at_most(node: ir.Node, tape: Tape) -> Values:
    return _or_equal(node, tape, "Less")


def by_where(node: ir.Node, tape: Tape) -> Values | None:
    first = _given(node, 0)
    if _type_of(node, first) in _FLOATS:
        return None
    chosen = first
    for value in node.inputs[1:]:
        chosen = _pick(tape, "Greater" if node.op_type == "Max" else "Less", chosen, value)
    return [tape.op("Identity", [chosen]) if chosen is first else chosen]


def clip_integers(node: ir.Node, tape: Tape) -> Values | None:
    x = _given(node, 0)
    if _type_of(node, x) in _FLOATS:
        return None
    low, high = (*node.inputs[1:], None, None)[:2]
    raised = x if low is None else _pick(tape, "Greater", x, low)
    return [tape.op("Identity", [raised]) if high is None else _pick(tape, "Less", raised, high)]


def power(node: ir.Node, tape: Tape) -> None:
    """Base and exponent have one type before opset 12, and it is a float."""
    base, exponent = _given(node, 0), _given(node, 1)
    if _type_of(node, base) in _FLOATS and exponent.dtype != base.dtype:
        node.replace_input_with(1, tape.op("Cast", [exponent], {"to": _type_of(node, base).value}))


def by_products(node: ir.Node, tape: Tape) -> Values | None:
    """Einsum of two matrices is MatMul; others are left, and refused."""
    equation = attribute_of(node, "equation")
    if str(equation).replace(" ", "") not in ("ij,jk->ik", "bij,bjk->bik"):
        return None
    return [tape.op("MatMul", [_given(node, 0), _given(node, 1)])]


def _or_equal(node: ir.Node, tape: Tape, op_type: str) -> Values:
    left, right = _given(node, 0), _given(node, 1)
    return [tape.op("Or", [tape.op(op_type, [left, right]), tape.op("Equal", [left, right])])]


def _pick(tape: Tape, op_type: str, left: ir.Value, right: ir.Value | None) -> ir.Value:
    if right is None:
        return left
    picked = tape.op("Where", [tape.op(op_type, [left, right]), left, right])
    picked.type = left.type
    return picked


def _given(node: ir.Node, position: int) -> ir.Value:
    value = node.inputs[position] if len(node.inputs) > position else None
    if value is None:
        raise Inexpressible(f"{node.op_type} without its input {position} has no older form.")
    return value


def _rank(node: ir.Node, value: ir.Value) -> int:
    if value.shape is None:
        raise Inexpressible(f"{node.op_type} of a value of unknown rank has no older form.")
    return len(value.shape)


def _type_of(node: ir.Node, value: ir.Value) -> ir.DataType:
    if value.dtype is None:
        raise Inexpressible(f"{node.op_type} of a value of unknown type has no older form.")
    return value.dtype


def _numpy_float(dtype: ir.DataType | None) -> type[np.floating[Any]]:
    return np.float64 if dtype is ir.DataType.DOUBLE else np.float32


def _constant(tape: Tape, array: np.ndarray[Any, Any]) -> ir.Value:
    value = tape.op("Constant", [], {"value": ir.tensor(array)})
    value.const_value = ir.tensor(array)
    value.dtype = ir.DataType.from_numpy(array.dtype)
    value.shape = ir.Shape(array.shape)
    return value
