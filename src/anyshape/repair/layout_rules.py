"""Rules for operators that move, join and pick axes and elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number, simplify
from anyshape.repair.broadcast_rules import follow_table
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_constants import varying_axes
from anyshape.repair.known_shapes import (
    Axes,
    Contradiction,
    Known,
    TableEdit,
    dims_in,
    is_open,
    product,
    read_number,
    sizes_like,
)

_MOST_INDICES = 4


def shape(follower: Follower, node: ir.Node) -> list[Known]:
    axes = follower.axes(node)
    begin, end = follower.attribute(node, "start", 0), follower.attribute(node, "end", None)
    axes = axes[slice(begin, end)]
    return [Known((Number(len(axes)),), _vector(axes))]


def _vector(axes: Axes) -> object:
    found = np.empty(len(axes), dtype=object)
    found[:] = axes
    return found


def size(follower: Follower, node: ir.Node) -> list[Known]:
    found = np.empty((), dtype=object)
    found[()] = product(follower.axes(node))
    return [Known((), found)]


def transpose(follower: Follower, node: ir.Node) -> list[Known]:
    axes = follower.axes(node)
    order = follower.attribute(node, "perm") or list(range(len(axes)))[::-1]
    return [Known(tuple(axes[axis] for axis in order))]


def squeeze(follower: Follower, node: ir.Node) -> list[Known]:
    first = follower.input(node, 0)
    assert first is not None
    given = follower.numbers(node, 1, "axes")
    rank = len(first.axes)
    places = (
        {axis % rank for axis in given}
        if given is not None
        else {index for index, axis in enumerate(first.axes) if follower.at(axis) == 1}
    )
    for place in places:
        follower.require_same(node, first.axes[place], Number(1), "it takes an axis away")
    ints = None if first.ints is None else first.ints.squeeze(tuple(sorted(places)))
    return [Known(tuple(axis for index, axis in enumerate(first.axes) if index not in places), ints)]


def unsqueeze(follower: Follower, node: ir.Node) -> list[Known]:
    first = follower.input(node, 0)
    given = follower.numbers(node, 1, "axes")
    assert first is not None and given is not None
    rank = len(first.axes) + len(given)
    places = sorted(axis % rank for axis in given)
    made = list(first.axes)
    for place in places:
        made.insert(place, Number(1))
    return [Known(tuple(made), None if first.ints is None else np.expand_dims(first.ints, tuple(places)))]


def flatten(follower: Follower, node: ir.Node) -> list[Known]:
    axes = follower.axes(node)
    given = follower.attribute(node, "axis", 1)
    axis = given % len(axes) if given < 0 else given
    return [Known((product(axes[:axis]), product(axes[axis:])))]


def concat(follower: Follower, node: ir.Node) -> list[Known]:
    shapes = [follower.axes(node, index) for index in range(len(node.inputs))]
    axis = follower.attribute(node, "axis") % len(shapes[0])
    made = list(shapes[0])
    for place in range(len(made)):
        column = [each[place] for each in shapes]
        if place == axis:
            made[place] = _joined(follower, node, column)
            continue
        opened = [each for each in column if is_open(each)]
        for index, own in enumerate(column):
            if opened and not is_open(own):
                known = follower.input(node, index)
                if known is None or not known.is_constant:
                    follower.require_same(node, opened[0], own, "it joins values")
            elif opened:
                follower.require_same(node, opened[0], own, "it joins values")
        made[place] = opened[0] if opened else column[0]
    for index in range(len(shapes)):
        wanted = {place: size for place, size in enumerate(made) if place != axis and is_open(size)}
        follow_table(follower, node, index, wanted, may_broadcast=False)
    return [Known(tuple(made), _joined_ints(follower, node))]


def _joined(follower: Follower, node: ir.Node, column: list[Expr]) -> Expr:
    """The sum; a constant that fills an axis up to a round size is a question."""
    total: Expr = Number(0)
    for each in column:
        total = simplify(total + each)
    for index, own in enumerate(column):
        known = follower.input(node, index)
        if is_open(total) and not is_open(own) and known is not None and known.is_constant and follower.at(own) > 1:
            value = follower.at(total)
            if value % 8 == 0 or value % 10 == 0 or sizes_like(follower, follower.at(own)):
                why = f"a constant of {own} is joined to a size that follows dims: it may fill it up to {value}."
                raise Contradiction(node, why, dims_in((total,)))
    return total


def _joined_ints(follower: Follower, node: ir.Node) -> object:
    found = [follower.input(node, index) for index in range(len(node.inputs))]
    if any(each is None or each.ints is None or each.ints.ndim != 1 for each in found):
        return None
    return np.concatenate([each.ints for each in found if each is not None])


def gather(follower: Follower, node: ir.Node) -> list[Known]:
    data, picked = follower.input(node, 0), follower.input(node, 1)
    assert data is not None and picked is not None
    axis = follower.attribute(node, "axis", 0) % len(data.axes)
    have = data.axes[axis]
    if is_open(have) and picked.is_constant:
        _check_indices(follower, node, have, picked)
    ints = None
    if data.ints is not None and picked.is_constant and len(data.axes) == 1:
        taken = data.ints[picked.array()]
        ints = taken if isinstance(taken, np.ndarray) else _scalar(taken)
    return [Known((*data.axes[:axis], *picked.axes, *data.axes[axis + 1 :]), ints)]


def _scalar(value: object) -> object:
    found = np.empty((), dtype=object)
    found[()] = value
    return found


def _check_indices(follower: Follower, node: ir.Node, have: Expr, picked: Known) -> None:
    """Positions on an axis that follows a dim: few of them, and each may follow it, too."""
    places = [int(each) for each in picked.array().reshape(-1)]
    if len(places) > _MOST_INDICES:
        raise Contradiction(node, f"it picks {len(places)} fixed places of an axis of size {have}.", dims_in((have,)))
    readings = [read_number(follower, place, have) for place in places]
    if all(len(each) == 1 for each in readings):
        return
    chosen = [
        follower.choose(node, [(each,) for each in found], f"[{index}]")[0] for index, found in enumerate(readings)
    ]
    follower.edit_ints(node, 1, chosen, is_scalar=not picked.axes)


def gather_elements(follower: Follower, node: ir.Node) -> list[Known]:
    data, picked = follower.input(node, 0), follower.input(node, 1)
    assert data is not None and picked is not None
    if picked.is_constant and any(map(is_open, data.axes)):
        raise Contradiction(node, "its indices are a table of the file's own sizes.", dims_in(data.axes))
    return [Known(picked.axes)]


def gather_nd(follower: Follower, node: ir.Node) -> list[Known]:
    data, picked = follower.input(node, 0), follower.input(node, 1)
    assert data is not None and picked is not None
    batch, depth = follower.attribute(node, "batch_dims", 0), follower.at(picked.axes[-1])
    axes = picked.axes
    if picked.is_constant and any(map(is_open, data.axes)):
        if batch:
            raise Contradiction(node, "its indices are a table of the file's own sizes.", dims_in(data.axes))
        axes = _followed_positions(follower, node, data.axes, picked.array())
    return [Known((*axes[:-1], *data.axes[batch + depth :]))]


def _followed_positions(follower: Follower, node: ir.Node, data: Axes, table: np.ndarray[Any, Any]) -> Axes:
    """The axes of a constant table of positions: where it counts all places of an axis of the data, it follows that axis."""
    made: list[Expr] = [Number(size) for size in table.shape]
    counted: dict[int, int] = {}
    for part in range(table.shape[-1]):
        if not is_open(data[part]):
            continue
        places = [axis for axis in range(table.ndim - 1) if _counts(table[..., part], axis)]
        places = [axis for axis in places if table.shape[axis] == follower.at(data[part])]
        if not places:
            raise Contradiction(node, "it picks fixed places of an axis that follows dims.", dims_in((data[part],)))
        readings = [tuple(data[part] if axis == place else each for axis, each in enumerate(made)) for place in places]
        made = list(follower.choose(node, readings, f"[{part}]"))
        counted[part] = next(axis for axis in places if made[axis] == data[part])
    for axis, size in enumerate(table.shape[:-1]):
        if not is_open(made[axis]) and size > 1:
            options = (*sizes_like(follower, size), made[axis])
            (made[axis],) = follower.choose(node, [(each,) for each in options], f"[axis {axis}]")
    followed = {axis: size for axis, size in enumerate(made) if is_open(size)}
    rest = table[..., [part for part in range(table.shape[-1]) if part not in counted]]
    if varying_axes(rest, followed):
        raise Contradiction(node, "its positions vary along an axis that follows dims.", dims_in(followed.values()))
    follower.edits.append(TableEdit(node, 1, table, followed, may_broadcast=False, counted=counted))
    return tuple(made)


def _counts(table: np.ndarray[Any, Any], axis: int) -> bool:
    """Whether the values are 0, 1, 2, … along the axis, and depend on no other one."""
    places = np.arange(table.shape[axis]).reshape([-1 if each == axis else 1 for each in range(table.ndim)])
    return bool((table == places).all())


def scatter(follower: Follower, node: ir.Node) -> list[Known]:
    data, picked = follower.input(node, 0), follower.input(node, 1)
    assert data is not None and picked is not None
    sizes = (*data.axes, *follower.axes(node, 2))
    if any(map(is_open, sizes)) and (picked.is_constant or data.is_constant or not any(map(is_open, data.axes))):
        raise Contradiction(node, "it writes at places that are a table of the file's own sizes.", dims_in(sizes))
    return [Known(data.axes)]


def top_k(follower: Follower, node: ir.Node) -> list[Known]:
    axes = follower.axes(node)
    axis = follower.attribute(node, "axis", -1) % len(axes)
    wanted = follower.ints(node, 1, "k")
    assert wanted is not None
    count = wanted[0]
    if is_open(axes[axis]) and not is_open(count):
        (count,) = follower.choose(node, [(each,) for each in read_number(follower, follower.at(count), axes[axis])])
        follower.edit_ints(node, 1, [count])
    return [Known((*axes[:axis], count, *axes[axis + 1 :]))] * 2


def depth_to_space(follower: Follower, node: ir.Node) -> list[Known]:
    batch, channels, *space = follower.axes(node)
    block = follower.attribute(node, "blocksize")
    if node.op_type == "DepthToSpace":
        return [Known((batch, simplify(channels // (block * block)), *(simplify(each * block) for each in space)))]
    return [Known((batch, simplify(channels * (block * block)), *(simplify(each // block) for each in space)))]


def trilu(follower: Follower, node: ir.Node) -> list[Known]:
    """A diagonal beside the main one may be a size."""
    axes = follower.axes(node)
    shift = follower.ints(node, 1)
    if (
        shift
        and any(map(is_open, axes[-2:]))
        and shift[0] not in (Number(-1), Number(0), Number(1))
        and not is_open(shift[0])
    ):
        raise Contradiction(node, f"whether its diagonal {shift[0]} follows a size is not in the file.", dims_in(axes))
    return [Known(axes)]


def one_hot(follower: Follower, node: ir.Node) -> list[Known]:
    axes = list(follower.axes(node))
    depth = follower.ints(node, 1)
    assert depth is not None
    rank = len(axes) + 1
    options = [(each,) for each in (depth[0], *sizes_like(follower, follower.at(depth[0])))]
    (count,) = follower.choose(node, options)
    follower.edit_ints(node, 1, [count], is_scalar=not follower.axes(node, 1))
    axes.insert(follower.attribute(node, "axis", -1) % rank, count)
    return [Known(tuple(axes))]


def picked_axes(follower: Follower, node: ir.Node) -> list[Known]:
    """Compress and Unique and NonZero: how many elements come out depends on values."""
    raise Contradiction(node, "how many elements it gives depends on values.")
