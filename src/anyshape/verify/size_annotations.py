"""Writes on every node that computes a size what that size is, as an expression of the dims.

    Gather(Shape(x), 1)     ->     Gather(Shape(x), 1)  anyshape.sizes: ["seq"]

A shape stands in a file as an expression already; a size that is computed from shapes does not, and no tensor of the
module has its value. With it, a later check can name the first wrong size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number, Op, Ref, as_expr, dims_of, parse_expr, simplify
from anyshape.findings import DeclarationError
from anyshape.runtime.child_messages import Array

SIZES = "anyshape.sizes"
_MOST_ELEMENTS = 256
_LONGEST_TEXT = 200
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)
_Known = MutableMapping[ir.Value, Array]


class _Untold(Exception):
    """What a node computes is no size, or not one that can be expressed."""


def annotate_sizes(model: ir.Model) -> int:
    """Write it on the nodes of the model and of the graphs inside it. Returns how many nodes."""
    names: set[str] = set()
    for size in (size for value in model.graph.inputs for size in value.shape or ()):
        if not isinstance(size, int) and size.value is not None:
            with suppress(DeclarationError):
                names.update(dims_of(parse_expr(size.value)))
    return _tell_graph(model.graph, {}, frozenset(names))


def _tell_graph(graph: ir.Graph, known: _Known, names: frozenset[str]) -> int:
    count = 0
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                count += _tell_graph(attribute.as_graph(), known, names)
        with suppress(_Untold, DeclarationError, ValueError, IndexError, TypeError):
            given = _sizes_of(node, known, names)
            known.update(zip(node.outputs, given, strict=True))
            if node.op_type != "Constant" and all(array.size <= _MOST_ELEMENTS for array in given):
                node.metadata_props[SIZES] = json.dumps([_plain(array) for array in given], separators=(",", ":"))
                count += 1
    return count


def _sizes_of(node: ir.Node, known: _Known, names: frozenset[str]) -> list[Array]:
    if node.domain:
        raise _Untold
    if node.op_type in ("Shape", "Size"):
        return [_shape(node, names)]
    if node.op_type == "Constant":
        return [_constant(node.outputs[0])]
    compute = _COMPUTED.get(node.op_type)
    if compute is None:
        raise _Untold
    given = compute(node, [_value(value, known) for value in node.inputs if value is not None])
    return given if isinstance(given, list) else [given]


def _value(value: ir.Value, known: _Known) -> Array:
    if value not in known:
        known[value] = _constant(value)
    return known[value]


def _constant(value: ir.Value) -> Array:
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype not in _INTEGERS or tensor.size > _MOST_ELEMENTS:
        raise _Untold
    return _symbolic(tensor.numpy())


def _symbolic(array: Any) -> Array:
    """The numbers as expressions; an array of objects also where it has no axes."""
    numbers = np.asarray(array)
    made = np.empty(numbers.shape, dtype=object)
    made[...] = np.vectorize(lambda number: as_expr(int(number)), otypes=[object])(numbers) if numbers.size else made
    return made


def _shape(node: ir.Node, names: frozenset[str]) -> Array:
    value = node.inputs[0]
    if value is None or value.shape is None:
        raise _Untold
    start, end = _integer(node, "start", 0), _integer(node, "end", len(value.shape))
    sizes = [_size(size, names) for size in list(value.shape)[start:end]]
    if node.op_type == "Shape":
        return _array(sizes)
    product: Expr = Number(1)
    for size in sizes:
        product = product * size
    return _array(product)


def _size(size: Any, names: frozenset[str]) -> Expr:
    if isinstance(size, int):
        return Number(size)
    if size.value is None:
        raise _Untold
    expr = parse_expr(str(size.value))
    if not names.issuperset(dims_of(expr)):
        raise _Untold  # a size that depends on values
    return expr


def _array(expressions: Any) -> Array:
    made = np.empty(len(expressions) if isinstance(expressions, list) else (), dtype=object)
    made[...] = expressions
    return _simplified(made)


def _simplified(array: Array) -> Array:
    for place in np.ndindex(array.shape):
        array[place] = simplify(_element(array, place))
        if len(str(array[place])) > _LONGEST_TEXT:
            raise _Untold
    return array


def _element(array: Array, place: tuple[int, ...]) -> Expr:
    found: Any = array[place]
    return as_expr(found)


def _numbers(array: Array) -> Array:
    if not all(isinstance(each, Number) for each in array.reshape(-1)):
        raise _Untold
    return np.array([each.value for each in array.reshape(-1)], np.int64).reshape(array.shape)


def _integer(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


def _elementwise(symbol: str) -> Callable[[ir.Node, list[Array]], Array]:
    def compute(node: ir.Node, given: list[Array]) -> Array:
        return reduce(lambda one, other: _paired(symbol, one, other), given)

    return compute


def _paired(symbol: str, one: Array, other: Array) -> Array:
    left, right = np.broadcast_arrays(one, other)
    made = np.empty(left.shape, dtype=object)
    for place in np.ndindex(left.shape):
        made[place] = Op(symbol, (_element(left, place), _element(right, place)))
    return _simplified(made)


def _div(node: ir.Node, given: list[Array]) -> Array:
    """ONNX rounds towards 0 and `//` downwards, so what may be negative is divided from both sides."""
    one, other = given
    if all(_is_never_negative(each) for each in (*one.reshape(-1), *other.reshape(-1))):
        return _paired("//", one, other)
    if not (_numbers(other) > 0).all():
        raise _Untold
    zero = _array(Number(0))
    above = _paired("//", _paired("max", one, zero), other)
    return _paired("-", above, _paired("//", _paired("max", _paired("-", zero, one), zero), other))


def _is_never_negative(expr: Expr) -> bool:
    if isinstance(expr, Number):
        return expr.value >= 0
    return isinstance(expr, Ref) or (
        isinstance(expr, Op) and expr.symbol != "-" and all(map(_is_never_negative, expr.args))
    )


def _mod(node: ir.Node, given: list[Array]) -> Array:
    if _integer(node, "fmod", 0):
        raise _Untold
    return _paired("%", *given)


def _same(node: ir.Node, given: list[Array]) -> Array:
    if node.op_type == "Cast" and ir.DataType(_integer(node, "to", 0)) not in _INTEGERS:
        raise _Untold
    return given[0]


def _gather(node: ir.Node, given: list[Array]) -> Array:
    """Out of a table of one entry, any index that finds something finds that entry."""
    table, axis = given[0], _integer(node, "axis", 0)
    places = np.zeros(given[1].shape, np.int64) if table.shape[axis] == 1 else _numbers(given[1])
    return np.asarray(np.take(table, places, axis=axis), dtype=object)


def _concat(node: ir.Node, given: list[Array]) -> Array:
    return np.concatenate(given, axis=_integer(node, "axis", 0))


def _slice(node: ir.Node, given: list[Array]) -> Array:
    data, starts, ends, *rest = given
    axes = _numbers(rest[0]) if rest else np.arange(starts.size)
    steps = _numbers(rest[1]) if len(rest) > 1 else np.ones(starts.size, np.int64)
    where = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, _numbers(starts), _numbers(ends), steps, strict=True):
        if step < 1:
            raise _Untold
        where[int(axis)] = slice(int(start), int(end), int(step))
    return data[tuple(where)]


def _squeeze(node: ir.Node, given: list[Array]) -> Array:
    axes = tuple(int(axis) for axis in _numbers(given[1])) if len(given) > 1 else None
    return np.asarray(np.squeeze(given[0], axis=axes), dtype=object)


def _unsqueeze(node: ir.Node, given: list[Array]) -> Array:
    return np.expand_dims(given[0], tuple(int(axis) for axis in _numbers(given[1])))


def _reshape(node: ir.Node, given: list[Array]) -> Array:
    return given[0].reshape(tuple(int(size) for size in _numbers(given[1])))


def _reduced(symbol: str) -> Callable[[ir.Node, list[Array]], Array]:
    def compute(node: ir.Node, given: list[Array]) -> Array:
        axes = tuple(int(axis) for axis in _numbers(given[1])) if len(given) > 1 else tuple(range(given[0].ndim))
        if len(axes) != 1 or "axes" in node.attributes:
            raise _Untold
        parts = [np.asarray(part, dtype=object) for part in np.moveaxis(given[0], axes[0], 0)]
        made = reduce(lambda one, other: _paired(symbol, one, other), parts)
        return np.expand_dims(made, axes[0]) if _integer(node, "keepdims", 1) else made

    return compute


def _split(node: ir.Node, given: list[Array]) -> list[Array]:
    ends = np.cumsum(_numbers(given[1]))[:-1]
    return np.split(given[0], ends, axis=_integer(node, "axis", 0))


_COMPUTED: Mapping[str, Callable[[ir.Node, list[Array]], Array | list[Array]]] = {
    "Add": _elementwise("+"),
    "Sub": _elementwise("-"),
    "Mul": _elementwise("*"),
    "Min": _elementwise("min"),
    "Max": _elementwise("max"),
    "Div": _div,
    "Mod": _mod,
    "Neg": lambda node, given: _paired("-", _array(Number(0)), given[0]),
    "Abs": lambda node, given: _paired("max", given[0], _paired("-", _array(Number(0)), given[0])),
    "Identity": _same,
    "Cast": _same,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "ReduceMax": _reduced("max"),
    "ReduceMin": _reduced("min"),
    "ReduceSum": _reduced("+"),
    "ReduceProd": _reduced("*"),
    "Split": _split,
}


def _plain(array: Array) -> Any:
    """As JSON has it: numbers, and text for what depends on dims."""
    return (
        np.vectorize(lambda each: each.value if isinstance(each, Number) else str(each), otypes=[object])(
            array
        ).tolist()
        if array.size
        else array.tolist()
    )
