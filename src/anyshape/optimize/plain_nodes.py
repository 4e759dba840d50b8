"""Nodes that move or reshape data without need, made fewer.

    Transpose(x, the axes in order)          ->  x
    Transpose(Transpose(x, first), second)   ->  Transpose(x, both)
    Unsqueeze(Unsqueeze(x, first), second)   ->  Unsqueeze(x, both)
    Slice(x, from 0 to the end)              ->  x
    Cast(x, the type of x)                   ->  x
    Reshape(Squeeze(Shape(x, i, i+1)), [-1]) ->  Shape(x, i, i+1)
    Reshape(x, computed sizes)               ->  Reshape(x, [0, 0, 12, 64])    see reshapes.py

A node that gives an output of its graph stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import onnx_ir as ir

from anyshape.optimize.constants import add_integers, find_integers
from anyshape.optimize.reshapes import fixed_sizes

_END = 2**63 - 1


def simplify_nodes(model: ir.Model, never_empty: Collection[str] = ()) -> int:
    """Apply the rules to every graph of the model, in place. `never_empty` are the dims that are at least 1."""
    changed = 0
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.domain or not node.inputs or node.inputs[0] is None or len(node.outputs) != 1:
            continue
        if node.op_type == "Reshape":
            changed += _fix_sizes(model, node, never_empty)
        if (merge := _MERGED.get(node.op_type)) is not None:
            changed += merge(model, node)
        rule = _REPLACED.get(node.op_type)
        kept = rule(node) if rule is not None else None
        if kept is not None and not node.outputs[0].is_graph_output():
            ir.convenience.replace_all_uses_with(node.outputs[0], kept)
            changed += 1
    return changed


def _fix_sizes(model: ir.Model, node: ir.Node, never_empty: Collection[str]) -> bool:
    sizes = fixed_sizes(node, never_empty)
    if sizes is None:
        return False
    node.replace_input_with(1, add_integers(model, "sizes", sizes))
    node.attributes["allowzero"] = ir.AttrInt64("allowzero", 0)
    return True


def _permutation(node: ir.Node | None) -> list[int] | None:
    if node is None or node.domain or node.op_type != "Transpose" or "perm" not in node.attributes:
        return None
    return list(node.attributes["perm"].as_ints())


def _merge_transposes(model: ir.Model, node: ir.Node) -> bool:
    inner = node.inputs[0].producer() if node.inputs[0] is not None else None
    first, second = _permutation(inner), _permutation(node)
    if inner is None or first is None or second is None:
        return False
    node.attributes["perm"] = ir.AttrInt64s("perm", [first[axis] for axis in second])
    node.replace_input_with(0, inner.inputs[0])
    return True


def _merge_unsqueezes(model: ir.Model, node: ir.Node) -> bool:
    inner = node.inputs[0].producer() if node.inputs[0] is not None else None
    if inner is None or inner.domain or inner.op_type != "Unsqueeze":
        return False
    first, second = find_integers(inner.inputs[1]), find_integers(node.inputs[1])
    if first is None or second is None or min(*first, *second) < 0:
        return False
    axes = set(second)
    places = iter([axis for axis in range(max(*first, *second) + len(first) + len(second) + 1) if axis not in axes])
    where = list(places)
    merged = sorted(axes | {where[axis] for axis in first})
    node.replace_input_with(0, inner.inputs[0])
    node.replace_input_with(1, add_integers(model, "axes", merged))
    return True


_MERGED: dict[str, Callable[[ir.Model, ir.Node], bool]] = {
    "Transpose": _merge_transposes,
    "Unsqueeze": _merge_unsqueezes,
}


def _in_order(node: ir.Node) -> ir.Value | None:
    axes = _permutation(node)
    return node.inputs[0] if axes is not None and axes == sorted(axes) else None


def _whole_slice(node: ir.Node) -> ir.Value | None:
    if len(node.inputs) < 4:
        return None
    starts, ends = find_integers(node.inputs[1]), find_integers(node.inputs[2])
    steps = find_integers(node.inputs[4]) if len(node.inputs) > 4 else [1]
    if starts is None or ends is None or steps is None:
        return None
    is_whole = not any(starts) and all(end == _END for end in ends) and all(step == 1 for step in steps)
    return node.inputs[0] if is_whole else None


def _same_type(node: ir.Node) -> ir.Value | None:
    value = node.inputs[0]
    return value if value is not None and value.dtype == ir.DataType(node.attributes["to"].as_int()) else None


def _shape_again(node: ir.Node) -> ir.Value | None:
    """The size of one axis as a vector, made a scalar and a vector again."""
    squeeze = node.inputs[0].producer() if node.inputs[0] is not None else None
    if squeeze is None or squeeze.op_type != "Squeeze" or find_integers(node.inputs[1]) not in ([-1], [1]):
        return None
    shape = squeeze.inputs[0].producer() if squeeze.inputs[0] is not None else None
    if shape is None or shape.op_type != "Shape" or "start" not in shape.attributes or "end" not in shape.attributes:
        return None
    start, end = (shape.attributes[name].as_int() for name in ("start", "end"))
    return squeeze.inputs[0] if end - start == 1 and start * end >= 0 else None


_REPLACED: dict[str, Callable[[ir.Node], ir.Value | None]] = {
    "Transpose": _in_order,
    "Slice": _whole_slice,
    "Cast": _same_type,
    "Reshape": _shape_again,
}
