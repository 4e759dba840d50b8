"""Rules for operators that work element by element, on matrices, or along axes: outputs follow from the inputs' axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number, Op, simplify
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_constants import has_pattern, is_regular, varying_axes
from anyshape.repair.known_shapes import Axes, Contradiction, Known, dims_in, is_open, is_same, product, sizes_like

_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "//", "Mod": "%", "Max": "max", "Min": "min"}


def same(follower: Follower, node: ir.Node) -> list[Known]:
    """Every output has the axes of the first input."""
    first = follower.input(node, 0)
    assert first is not None
    ints = first.ints if node.op_type in ("Identity", "Cast") else None
    return [
        Known(first.axes, ints if index == 0 else None, first.load if node.op_type == "Identity" else None)
        for index, _ in enumerate(node.outputs)
    ]


def broadcast(follower: Follower, node: ir.Node) -> list[Known]:
    """The output of inputs that are broadcast; constants among them follow the others' sizes."""
    present = [index for index, value in enumerate(node.inputs) if value is not None]
    axes = broadcast_inputs(follower, node, present)
    return [Known(axes, _computed(follower, node))]


def broadcast_inputs(follower: Follower, node: ir.Node, indices: Sequence[int], lead: int = 0) -> Axes:
    """The common axes of these inputs, without the last `lead` ones of each."""
    shapes = {index: follower.axes(node, index)[: len(follower.axes(node, index)) - lead] for index in indices}
    rank = max(len(shape) for shape in shapes.values())
    columns = [
        {index: shape[place - rank] for index, shape in shapes.items() if len(shape) >= rank - place}
        for place in range(rank)
    ]
    made = [_common(follower, node, column) for column in columns]
    for place, column in enumerate(columns):
        if not is_open(made[place]):
            wanted = {index: _wanted(columns, made, index, rank - len(shape)) for index, shape in shapes.items()}
            made[place] = _made_by_constants(follower, node, column, made[place], place - rank, wanted)
    for index, shape in shapes.items():
        axes = _wanted(columns, made, index, rank - len(shape))
        if axes:
            follower.edit_table(node, index, axes, may_broadcast=True)
    return tuple(made)


def _wanted(columns: Sequence[dict[int, Expr]], made: Sequence[Expr], index: int, shift: int) -> dict[int, Expr]:
    """The axes of an input that have to follow a size, and are a number in the file."""
    return {
        place - shift: made[place]
        for place, column in enumerate(columns)
        if index in column and is_open(made[place]) and not is_open(column[index]) and column[index] != Number(1)
    }


def _common(follower: Follower, node: ir.Node, column: dict[int, Expr]) -> Expr:
    """The size of one axis; that of a constant may follow the others, that of a computed value may not."""
    others = [own for own in column.values() if is_open(own)]
    if not others:
        return max(column.values(), key=lambda each: (each != Number(1), follower.at(each)))
    for own in others[1:]:
        follower.require_same(node, own, others[0], "two inputs are combined element by element")
    for index, own in column.items():
        known = follower.input(node, index)
        if not is_open(own) and own != Number(1):
            if follower.at(own) != follower.at(others[0]):
                raise Contradiction(node, f"an axis of size {others[0]} meets one of {own}.", dims_in(others))
            if known is None or not known.is_constant:
                follower.require_same(node, others[0], own, "two inputs are combined element by element")
    return others[0]


def _made_by_constants(
    follower: Follower,
    node: ir.Node,
    column: dict[int, Expr],
    size: Expr,
    place: int,
    wanted: Mapping[int, dict[int, Expr]],
) -> Expr:
    """The size of an axis that constants alone have: a size of the graph, if they look as if they were made for one."""
    constants = {index for index, own in column.items() if (known := follower.input(node, index)) and known.is_constant}
    options = sizes_like(follower, follower.at(size))
    if not constants or not options or any(own != Number(1) for index, own in column.items() if index not in constants):
        return size
    is_counted = False  # as in `one_hot` by a comparison: that rows are independent says nothing about its length
    for index in constants:
        known = follower.input(node, index)
        if known is None or column[index] == Number(1):
            continue
        array = known.array()
        axis = array.ndim + place
        is_counted = is_counted or bool(varying_axes(array, [axis]))
        if not has_pattern(array, axis):
            return size
        if not is_regular(array, {**wanted[index], axis: options[0]}):
            why = f"the constant {getattr(node.inputs[index], 'name', '')!r} it takes may have been made for {options[0]}."
            raise Contradiction(node, why, dims_in(options))
    return follower.choose(node, [(each,) for each in (size, *options)], f"[{place}]", acts=is_counted)[0]


def _computed(follower: Follower, node: ir.Node) -> object:
    """Arithmetic on integers that are sizes."""
    if node.op_type in ("Equal", "Where"):
        return _decided(follower, node)
    symbol = _ARITHMETIC.get(node.op_type)
    known = [follower.input(node, index) for index in range(len(node.inputs))]
    if symbol is None or len(known) != 2 or any(each is None or each.ints is None for each in known):
        return None
    one, other = (np.asarray(each.ints, dtype=object) for each in known if each is not None)
    pairs = np.broadcast(one, other)
    found = np.empty(pairs.shape, dtype=object)
    for index, (left, right) in zip(np.ndindex(pairs.shape), pairs, strict=True):
        if symbol in ("//", "%") and (right == Number(0) or (isinstance(right, Number) and right.value < 0)):
            return None
        found[index] = simplify(Op(symbol, (left, right)))
    return found


def _decided(follower: Follower, node: ir.Node) -> object:
    """Comparisons of sizes with numbers below 1, and what is picked by them, as exporters write `-1` of an Expand."""
    known = [follower.input(node, index) for index in range(len(node.inputs))]
    if any(each is None or (each.ints is None and not _is_bool(each)) for each in known):
        return None
    arrays = [_values(each) for each in known if each is not None]
    grid = np.broadcast(*arrays)
    found = np.empty(grid.shape, dtype=object)
    for index, parts in zip(np.ndindex(grid.shape), grid, strict=True):
        picked = _equal(*parts) if node.op_type == "Equal" else _picked(*parts)
        if picked is None:
            return None
        found[index] = picked
    return found


def _is_bool(known: Known) -> bool:
    return known.is_constant and known.array().dtype == np.bool_


def _values(known: Known) -> np.ndarray[Any, Any]:
    if known.ints is not None:
        return np.asarray(known.ints, dtype=object)
    found = np.empty(known.array().shape, dtype=object)
    for index, value in np.ndenumerate(known.array()):
        found[index] = Number(int(value))
    return found


def _equal(one: Expr, other: Expr) -> Expr | None:
    if isinstance(one, Number) and isinstance(other, Number):
        return Number(int(one == other))
    fixed = [each.value for each in (one, other) if isinstance(each, Number)]
    return Number(0) if fixed and fixed[0] < 0 else None  # no size is negative


def _picked(condition: Expr, one: Expr, other: Expr) -> Expr | None:
    return None if not isinstance(condition, Number) else one if condition.value else other


def matmul(follower: Follower, node: ir.Node) -> list[Known]:
    one, other = follower.axes(node, 0), follower.axes(node, 1)
    if len(one) == 1 or len(other) == 1:
        inner = one[-1], other[-2] if len(other) > 1 else other[-1]
        follower.require_same(node, *inner, "it multiplies matrices")
        return [Known((*one[:-1], *other[:-2], *(other[-1:] if len(other) > 1 else ())))]
    _require_inner(node, one[-1], other[-2])
    return [Known((*broadcast_inputs(follower, node, (0, 1), 2), one[-2], other[-1]))]


def _require_inner(node: ir.Node, one: Expr, other: Expr) -> None:
    if is_same(one, other):
        return
    opened = [each for each in (one, other) if is_open(each)]
    fixed = [str(each) for each in (one, other) if not is_open(each)]
    why = (
        f"it multiplies by a matrix of {fixed[0]} rows, so that {opened[0]} has to be {fixed[0]}."
        if fixed
        else f"it multiplies matrices: {one} has to be {other}."
    )
    raise Contradiction(node, why, dims_in(opened))


def gemm(follower: Follower, node: ir.Node) -> list[Known]:
    one, other = follower.axes(node, 0), follower.axes(node, 1)
    one = one[::-1] if follower.attribute(node, "transA", 0) else one
    other = other[::-1] if follower.attribute(node, "transB", 0) else other
    _require_inner(node, one[1], other[0])
    made = (one[0], other[1])
    added = follower.input(node, 2)
    if added is not None:
        follow_table(follower, node, 2, dict(zip(range(len(added.axes)), made[2 - len(added.axes) :], strict=True)))
    return [Known(made)]


def follow_table(
    follower: Follower, node: ir.Node, index: int, wanted: dict[int, Expr], *, may_broadcast: bool = True
) -> None:
    """Let the axes of an input be these sizes; those that are 1 and may be broadcast stay."""
    axes = follower.axes(node, index)
    changed: dict[int, Expr] = {}
    for axis, size in wanted.items():
        own = axes[axis]
        if is_same(own, size) or (may_broadcast and own == Number(1)):
            continue
        if is_open(own) or not is_open(size) or follower.at(own) != follower.at(size):
            follower.require_same(node, size, own, f"input {index} has another size")
        else:
            changed[axis] = size
    if changed:
        follower.edit_table(node, index, changed, may_broadcast=may_broadcast)


def reduce_(follower: Follower, node: ir.Node) -> list[Known]:
    first = follower.input(node, 0)
    assert first is not None
    axes = follower.numbers(node, 1, "axes")
    if not axes and follower.attribute(node, "noop_with_empty_axes", 0):
        return [first]
    rank = len(first.axes)
    places = {axis % rank for axis in axes} if axes else set(range(rank))
    ints = None
    if node.op_type == "ReduceProd" and first.ints is not None and rank == 1:
        ints = (
            _as_array([product(first.ints)])
            if follower.attribute(node, "keepdims", 1)
            else _as_array(product(first.ints))
        )
    follower.counts.setdefault(product(axis for place, axis in enumerate(first.axes) if place in places))
    return [Known(_reduced(follower, node, first.axes, places), ints)]


def _as_array(value: object) -> object:
    found = np.empty(1 if isinstance(value, list) else (), dtype=object)
    found[...] = value[0] if isinstance(value, list) else value
    return found


def arg_reduce(follower: Follower, node: ir.Node) -> list[Known]:
    axes = follower.axes(node)
    return [Known(_reduced(follower, node, axes, {follower.attribute(node, "axis", 0) % len(axes)}))]


def _reduced(follower: Follower, node: ir.Node, axes: Axes, places: set[int]) -> Axes:
    if follower.attribute(node, "keepdims", 1):
        return tuple(Number(1) if place in places else axis for place, axis in enumerate(axes))
    return tuple(axis for place, axis in enumerate(axes) if place not in places)


def norm_of_last(follower: Follower, node: ir.Node) -> list[Known]:
    """LayerNormalization and RMSNormalization: weights are broadcast over the last axes."""
    axes = follower.axes(node)
    first = follower.attribute(node, "axis", -1) % len(axes)
    for index in range(1, len(node.inputs)):
        known = follower.input(node, index)
        if known is not None:
            own = len(known.axes)
            follow_table(follower, node, index, dict(zip(range(own), axes[len(axes) - own :], strict=True)))
    ones = (*axes[:first], *([Number(1)] * (len(axes) - first)))
    return [Known(axes), *(Known(ones) for _ in node.outputs[1:])]


def norm_of_channels(follower: Follower, node: ir.Node) -> list[Known]:
    """BatchNormalization and its kin: one weight for each channel, which stays a number."""
    axes = follower.axes(node)
    for index in range(1, len(node.inputs)):
        known = follower.input(node, index)
        if known is not None and len(known.axes) == 1 and node.op_type != "GroupNormalization":
            follower.require_same(node, axes[1], known.axes[0], "it has a weight for each channel")
    return [Known(axes)]


def einsum(follower: Follower, node: ir.Node) -> list[Known]:
    equation = follower.attribute(node, "equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    if not arrow or "." in equation:
        raise Contradiction(node, f"the equation {equation!r} is not read.")
    sizes: dict[str, Expr] = {}
    for index, letters in enumerate(left.split(",")):
        for letter, axis in zip(letters, follower.axes(node, index), strict=True):
            known = sizes.setdefault(letter, axis)
            if is_open(axis) or is_open(known):
                sizes[letter] = follower.require_same(node, known, axis, "it sums over products")
    return [Known(tuple(sizes[letter] for letter in right))]
