"""Constants of a file: those with a pattern, those that nodes compute from other constants, and what these were made of.

A table is regular along axes if, along each of them, it is the same everywhere, or counts up in equal steps, or if along
two of them it has one value on one side of a diagonal and another one on the other. At least three sizes are needed to see a
pattern that changes along an axis.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number
from anyshape.repair.known_shapes import Known, constant_known
from anyshape.runtime import RunError, Session

Array = np.ndarray[Any, Any]
_FEWEST = 3
_IR_VERSION = 8
_MOST_TAKEN = 2**20
_MOST_MADE = 2**22
_RANDOM = "RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial Dropout"
_EACH = "Abs Cast Cos Erf Exp Identity Log Neg Not Reciprocal Sigmoid Sin Sqrt Tanh"
_BOTH = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Pow Sub And Or Where Max Min Clip"


@dataclass(frozen=True)
class Counting:
    """`start + step*i` along one axis; both have the other axes of the table, and size 1 along this one."""

    axis: int
    start: Array
    step: Array


@dataclass(frozen=True)
class Diagonal:
    """`here` where `column - row` is in relation `relation` to `offset`, else `there`; both are single values.

    `relation` is an operator of ONNX: Less, Equal or Greater.
    """

    rows: int
    columns: int
    relation: str
    offset: int
    here: Array
    there: Array


def is_regular(array: Array, axes: Mapping[int, Expr]) -> bool:
    """Whether the table can be made at other sizes of these axes."""
    varying = varying_axes(array, axes)
    if not varying:
        return True
    if len(varying) == 1:
        return find_counting(array, varying[0]) is not None
    return len(varying) == 2 and axes[varying[0]] == axes[varying[1]] and find_diagonal(array, *varying) is not None


def varying_axes(array: Array, axes: Iterable[int]) -> list[int]:
    """The axes along which the values differ."""
    return [axis for axis in axes if not _equal(array, array.take([0], axis))]


def find_counting(array: Array, axis: int) -> Counting | None:
    """The whole step by which all values grow along the axis, exactly; None where there is none.

    Other steps (`i/10` of ten) may depend on the size themselves.
    """
    if array.shape[axis] < _FEWEST or array.dtype.kind not in "iuf":
        return None
    start, second = array.take([0], axis), array.take([1], axis)
    with np.errstate(invalid="ignore"):  # infinities of a mask
        step = second - start
    if (start != start.flat[0]).any() or (step != step.flat[0]).any() or start.flat[0] % 1 or step.flat[0] % 1:
        return None
    places = np.arange(array.shape[axis]).astype(array.dtype)
    places = places.reshape([-1 if each == axis else 1 for each in range(array.ndim)])
    return Counting(axis, start, step) if _equal(array, start + step * places) else None


def has_pattern(array: Array, axis: int) -> bool:
    """Whether the values are the same along the axis, or nearly in equal steps: as if they were made for its size."""
    if not varying_axes(array, [axis]):
        return True
    if array.shape[axis] < _FEWEST or array.dtype.kind not in "iuf":
        return array.dtype.kind == "b"
    steps = np.diff(array.astype(np.float64), axis=axis)
    with np.errstate(invalid="ignore"):
        return bool(
            np.allclose(steps, steps.take([0], axis), rtol=1e-3, atol=1e-6 * max(1.0, float(np.abs(steps).max())))
        )


def find_diagonal(array: Array, rows: int, columns: int) -> Diagonal | None:
    """Two values, parted by a diagonal near the main one; None where the table is not like that."""
    size = array.shape[rows]
    if size < _FEWEST or array.shape[columns] != size or len(np.unique(_as_bits(array))) != 2:
        return None
    rest = [axis for axis in range(array.ndim) if axis not in (rows, columns)]
    if varying_axes(array, rest):
        return None
    flat = np.moveaxis(array, (rows, columns), (-2, -1)).reshape(-1, size, array.shape[columns])[0]
    distance = np.arange(size)[None, :] - np.arange(size)[:, None]
    for offset in (0, 1, -1):
        for relation, here in (
            ("Less", distance < offset),
            ("Greater", distance > offset),
            ("Equal", distance == offset),
        ):
            if here.any() and not here.all():
                values = flat[here][0], flat[~here][0]
                if _equal(flat, np.where(here, *values).astype(array.dtype)):
                    return Diagonal(rows, columns, relation, offset, np.asarray(values[0]), np.asarray(values[1]))
    return None


def _equal(one: Array, other: Array) -> bool:
    left, right = np.broadcast_arrays(_as_bits(one), _as_bits(other))
    return bool(np.array_equal(left, right))


def _as_bits(array: Array) -> Array:
    """Floats as integers of their width: NaN and the sign of zero count."""
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return array


def find_constant(
    node: ir.Node, known: Mapping[ir.Value, Known], kept: MutableMapping[ir.Value, Known]
) -> Sequence[Known] | None:
    """What the node gives, if it takes small constants alone; None otherwise. `kept` has those of earlier passes."""
    if all(value in kept for value in node.outputs):
        return [kept[value] for value in node.outputs]
    inputs = [known.get(value) for value in node.inputs if value is not None]
    if node.op_type in _RANDOM.split() or node.domain not in ("", "ai.onnx") or _has_graph(node):
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


Wanted = dict[int, dict[int, Expr]]


def find_sources(node: ir.Node, axes: Mapping[int, Expr], known: Mapping[ir.Value, Known]) -> Wanted | None:
    """The axes of inputs that have to follow sizes, by input; None where the operator is not looked through."""
    shapes = [known[value].axes if value is not None and value in known else None for value in node.inputs]
    if any(shape is None for shape, value in zip(shapes, node.inputs, strict=True) if value is not None):
        return None
    if node.op_type in _EACH.split():
        return {0: dict(axes)}
    if node.op_type in _BOTH.split():
        return _of_broadcast(axes, [shape for shape in shapes if shape is not None])
    if node.op_type == "Unsqueeze":
        return _of_unsqueeze(node, axes, known)
    if node.op_type == "Gather" and shapes[0] is not None and shapes[1] is not None:
        return _of_gather(node, axes, len(shapes[0]), len(shapes[1]))
    if node.op_type == "Concat":
        joined = node.attributes["axis"].as_int() % len(shapes[0] or ())
        return None if joined in axes else {index: dict(axes) for index in range(len(shapes))}
    return None


def _of_broadcast(axes: Mapping[int, Expr], shapes: list[tuple[Expr, ...]]) -> Wanted | None:
    rank = max(map(len, shapes))
    wanted: Wanted = {}
    for index, shape in enumerate(shapes):
        shift = rank - len(shape)
        own = {axis - shift: size for axis, size in axes.items() if axis >= shift and shape[axis - shift] != Number(1)}
        if own:
            wanted[index] = own
    return wanted


def _of_unsqueeze(node: ir.Node, axes: Mapping[int, Expr], known: Mapping[ir.Value, Known]) -> Wanted | None:
    rank = len(known[node.outputs[0]].axes)
    attribute = node.attributes.get("axes")
    if attribute is not None:
        given = list(attribute.as_ints())
    elif len(node.inputs) > 1 and node.inputs[1] is not None:
        given = [int(each) for each in known[node.inputs[1]].array().reshape(-1)]
    else:
        return None
    added = {axis % rank for axis in given}
    kept = [axis for axis in range(rank) if axis not in added]
    return None if added & set(axes) else {0: {kept.index(axis): size for axis, size in axes.items()}}


def _of_gather(node: ir.Node, axes: Mapping[int, Expr], data: int, picked: int) -> Wanted | None:
    attribute = node.attributes.get("axis")
    axis = (attribute.as_int() if attribute is not None else 0) % data
    if all(axis <= each < axis + picked for each in axes):
        return {1: {each - axis: size for each, size in axes.items()}}
    return None
