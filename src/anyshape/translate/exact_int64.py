"""Integers that onnxruntime computes inexactly, written with operators that are exact (seen to 1.31, on the CPU).

Its Max, Min, Clip, Sign, Relu, ReduceMax and ReduceMin compare the upper halves of the numbers, and where these are equal the
lower halves with a sign: of 2**31 and 7 the larger is 7, and the sign of 2**31 is -1. Greater, Less and TopK are right, and so
is each of them on a single number. ReduceSum, Pow and Mod of the dividend's sign go by way of doubles, exact up to 2**53; sums
and powers of 32 bits end at 2**31, where those of torch wrap around.

    Max(a, b)             ->   Where(Less(a, b), b, a)
    Clip(x, low, high)    ->   the larger of x and low, and the smaller of that and high
    Sign(x)               ->   Cast(Greater(x, 0)) - Cast(Less(x, 0))
    ReduceMax(x, axes)    ->   TopK of one, axis after axis
    ReduceSum(x, axes)    ->   the sums of what is left by 2**31, and of how often it is in x
    Pow(x, 5)             ->   products, also of int32
    ReduceSum of int32    ->   the same in 64 bits, cast back
    Div, Mod              ->   divisors 0 and -1 apart (see `exact_quotients`)

Nodes stay as they are where their numbers are sizes, or sums of sizes: these have less than 32 bits. A product of sizes may
have more. So do those that compare single numbers, and sums of numbers that were cast from a type of fewer bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import onnx_ir as ir

from anyshape.records.export import Exported
from anyshape.translate.exact_quotients import NodeWriter, needs_care, quotient, remainder
from anyshape.translate.lacking_forms import attribute_of
from anyshape.translate.whole_numbers import multiply_copies

_INT64 = ir.DataType.INT64
_OF_SIZES = ("Shape", "Size")
_OF_PAIRS = ("Max", "Min", "Clip", "Sign", "Relu")
_MOVING = ("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Gather", "Expand", "Identity", "Flatten")
_FEWER_BITS = frozenset(
    getattr(ir.DataType, name) for name in ("BOOL", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32")
)
_HALF = 2**31
_DIVISIONS = ("Div", "Mod")
_FOLLOWED_PRODUCTS = ("Mul", "ReduceProd")
_PRODUCTS = ("Mul", "Pow", "ReduceProd", "MatMul", "Einsum", "BitShift")


def compute_exactly(exported: Exported) -> Exported:
    """The model is changed in place, and given back."""
    of_sizes: dict[ir.Value, bool] = {}
    of_products: dict[ir.Value, bool] = {}
    for node in list(exported.model.graph.all_nodes()):
        given = [value for value in node.inputs if value is not None]
        form = _form_of(node, {value.dtype for value in (*given[:1], node.outputs[0])}) if node.domain == "" else None
        if form is None or _is_exact(node):
            continue
        is_division = node.op_type in _DIVISIONS and not attribute_of(node, "fmod")
        if is_division and _is_of_sizes(given[1], of_products, _FOLLOWED_PRODUCTS):
            continue
        if not all(_is_of_sizes(value, of_sizes) for value in given):
            with suppress(_Unknown):
                _replace(node, form)
    return exported


Form = Callable[[NodeWriter, ir.Node], ir.Value]


def _form_of(node: ir.Node, dtypes: set[ir.DataType | None]) -> Form | None:
    if node.op_type in _DIVISIONS:
        return _FORMS[node.op_type] if any(dtype is not None and dtype.is_integer() for dtype in dtypes) else None
    if node.op_type == "ReduceSum" and dtypes == {ir.DataType.INT32}:
        return _wide_sum
    if node.op_type == "Pow" and ir.DataType.INT32 in dtypes:
        return _power
    return _FORMS.get(node.op_type) if _INT64 in dtypes else None


class _Unknown(Exception):
    """Over which axes a node goes is known only when it runs: it stays as it is."""


def _is_exact(node: ir.Node) -> bool:
    """Whether onnxruntime's own kernel is, at these shapes and types."""
    if node.op_type == "ReduceSum":
        return node.outputs[0].dtype == _INT64 and _is_small(node.inputs[0])
    if node.op_type in _DIVISIONS:
        return not needs_care(node)
    shape = node.outputs[0].shape
    return node.op_type in _OF_PAIRS and shape is not None and all(size == 1 for size in shape)


def _is_small(value: ir.Value | None) -> bool:
    """Whether all numbers were cast from a type of fewer bits."""
    node = value.producer() if value is not None else None
    while node is not None and node.op_type in _MOVING and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    source = node.inputs[0] if node is not None and node.op_type == "Cast" else None
    return source is not None and source.dtype in _FEWER_BITS


def _is_of_sizes(value: ir.Value, known: dict[ir.Value, bool], products: Collection[str] = ()) -> bool:
    """Whether the value is a constant, or computed from sizes and constants without a product, but for these."""
    pending = [value]
    while pending:
        each = pending[-1]
        node = each.producer()
        if each in known or node is None or node.op_type in _OF_SIZES or node.op_type == "Constant":
            known.setdefault(each, node is not None or ir.convenience.get_const_tensor(each) is not None)
            pending.pop()
            continue
        inner = any(part.type == ir.AttributeType.GRAPH for part in node.attributes.values())
        before = [read for read in node.inputs if read is not None]
        unknown = [read for read in before if read not in known] if not inner else []
        if unknown:
            pending.extend(unknown)
            continue
        is_followed = not inner and (node.op_type not in _PRODUCTS or node.op_type in products)
        known[each] = is_followed and bool(before) and all(known[read] for read in before)
        pending.pop()
    return known[value]


def _replace(node: ir.Node, form: Form) -> None:
    writer = NodeWriter(node)
    result = form(writer, node)
    if result.producer() not in writer.nodes:  # the largest of one
        result = writer.add("Identity", result)
    old, graph = node.outputs[0], node.graph
    assert graph is not None
    name, result.shape = old.name, old.shape
    ir.convenience.replace_all_uses_with(old, result, replace_graph_outputs=True)
    graph.insert_before(node, writer.nodes)
    _remove(node)
    result.name = name


def _remove(node: ir.Node) -> None:
    """Remove a node that nothing reads, and then the constants, and casts of them, that only it read."""
    assert node.graph is not None
    read = [value for value in node.inputs if value is not None]
    node.graph.remove(node, safe=True)
    for value in read:
        before = value.producer()
        if value.uses() or value.is_graph_output() or value.is_graph_input() or value.graph is None:
            continue
        if before is not None and before.op_type in ("Cast", "Constant"):
            _remove(before)
        elif value.is_initializer():
            value.graph.initializers.pop(value.name or "")


def _largest(writer: NodeWriter, node: ir.Node) -> ir.Value:
    return _chosen(node, writer.larger)


def _smallest(writer: NodeWriter, node: ir.Node) -> ir.Value:
    return _chosen(node, writer.smaller)


def _chosen(node: ir.Node, choose: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    result, *others = [value for value in node.inputs if value is not None]
    for other in others:
        result = choose(result, other)
    return result


def _clipped(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, low, high = (*node.inputs, None, None)[:3]
    assert value is not None
    value = value if low is None else writer.larger(value, low)
    return value if high is None else writer.smaller(value, high)


def _sign(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, zero = node.inputs[0], writer.constant(0)
    assert value is not None
    tests = [writer.add(name, value, zero, dtype=ir.DataType.BOOL) for name in ("Greater", "Less")]
    above, below = (writer.add("Cast", test, to=_INT64.value) for test in tests)
    return writer.add("Sub", above, below)


def _not_negative(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return writer.larger(value, writer.constant(0))


def _largest_along(writer: NodeWriter, node: ir.Node) -> ir.Value:
    return _first_along(writer, node, largest=1)


def _smallest_along(writer: NodeWriter, node: ir.Node) -> ir.Value:
    return _first_along(writer, node, largest=0)


def _first_along(writer: NodeWriter, node: ir.Node, largest: int) -> ir.Value:
    value, axes, keeps = node.inputs[0], _axes_of(node), attribute_of(node, "keepdims") != 0
    assert value is not None
    one, kept = writer.constant([1]), [1] * len(value.shape) if value.shape is not None else None
    if axes:
        for axis in axes:
            value = writer.add("TopK", value, one, outputs=2, axis=axis, largest=largest)
        return value if keeps else writer.add("Squeeze", value, writer.constant(axes))
    if keeps and kept is None:
        raise _Unknown
    # Of nothing, ONNX gives the least integer, or the greatest.
    end = writer.constant([-(2**63) if largest else 2**63 - 1])
    flat = writer.add("Concat", writer.add("Reshape", value, writer.constant([-1])), end, axis=0)
    first = writer.add("TopK", flat, one, outputs=2, axis=0, largest=largest)
    return writer.add("Reshape", first, writer.constant(kept if keeps and kept is not None else []))


def _sum(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, half = node.inputs[0], writer.constant(_HALF)
    assert value is not None
    rest = writer.add("Mod", value, half)  # never negative
    times = writer.add("Div", writer.add("Sub", value, rest), half)
    low, high = (_summed(writer, node, each) for each in (rest, times))
    return writer.add("Add", writer.add("Mul", high, half), low)


def _wide_sum(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    wide = _summed(writer, node, writer.add("Cast", value, to=_INT64.value))
    return writer.add("Cast", wide, dtype=ir.DataType.INT32, to=ir.DataType.INT32.value)


def _summed(writer: NodeWriter, node: ir.Node, value: ir.Value) -> ir.Value:
    result = writer.add("ReduceSum", value, *(axes for axes in node.inputs[1:] if axes is not None))
    made = result.producer()
    assert made is not None
    made.attributes.update(node.attributes)
    return result


def _power(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, by = node.inputs
    cast = by.producer() if by is not None else None
    by = (
        cast.inputs[0] if cast is not None and cast.op_type == "Cast" else by
    )  # a wider type, for which there is a kernel
    known = ir.convenience.get_const_tensor(by) if by is not None else None
    exponent = known.numpy() if known is not None else np.array([])
    if (
        value is None
        or exponent.size != 1
        or exponent.ndim > len(value.shape or ())
        or not 1 <= exponent.item() < _HALF
    ):
        raise _Unknown
    if exponent.item() != int(exponent.item()):
        raise _Unknown
    return multiply_copies(value, int(exponent.item()), partial(writer.add, "Mul", dtype=value.dtype or _INT64))


def _axes_of(node: ir.Node) -> list[int]:
    """Empty for all of them."""
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    if axes is None:
        given = attribute_of(node, "axes")
        return list(given) if isinstance(given, Sequence) else []
    known = ir.convenience.get_const_tensor(axes)
    if known is None or (not known.size and attribute_of(node, "noop_with_empty_axes")):
        raise _Unknown
    return [int(axis) for axis in known.numpy().ravel()]


_FORMS: dict[str, Form] = {
    "Max": _largest,
    "Min": _smallest,
    "Clip": _clipped,
    "Sign": _sign,
    "Relu": _not_negative,
    "ReduceMax": _largest_along,
    "ReduceMin": _smallest_along,
    "ReduceSum": _sum,
    "Pow": _power,
    "Mod": remainder,
    "Div": quotient,
}
