"""A constant that a node makes of other constants: which of them have to follow sizes so that it does.

Rows of a table picked by counted positions, angles computed from them: the table itself has no pattern, its positions have one.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from anyshape.domain import Expr, Number
from anyshape.repair.known_shapes import Known

_EACH = (
    "Abs",
    "Cast",
    "Cos",
    "Erf",
    "Exp",
    "Identity",
    "Log",
    "Neg",
    "Not",
    "Reciprocal",
    "Sigmoid",
    "Sin",
    "Sqrt",
    "Tanh",
)
_BOTH = (
    "Add",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Mod",
    "Mul",
    "Pow",
    "Sub",
    "And",
    "Or",
    "Where",
    "Max",
    "Min",
    "Clip",
)

Wanted = dict[int, dict[int, Expr]]


def find_sources(node: ir.Node, axes: Mapping[int, Expr], known: Mapping[ir.Value, Known]) -> Wanted | None:
    """The axes of inputs that have to follow sizes, by input; None where the operator is not looked through."""
    shapes = [known[value].axes if value is not None and value in known else None for value in node.inputs]
    if any(shape is None for shape, value in zip(shapes, node.inputs, strict=True) if value is not None):
        return None
    if node.op_type in _EACH:
        return {0: dict(axes)}
    if node.op_type in _BOTH:
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
