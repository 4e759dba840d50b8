"""Rules for operators that cut and fill axes: Slice, Pad and Split, whose numbers are places on an axis."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.domain import Expr, Number, Op, evaluate, simplify
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_shapes import Axes, Contradiction, Known, dims_in, is_open, is_same, read_number

_END = 2**31 - 1


def slice_(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.input(node, 0)
    assert source is not None
    starts, ends = follower.ints(node, 1, "starts"), follower.ints(node, 2, "ends")
    assert starts is not None and ends is not None
    axes = follower.numbers(node, 3, "axes") or list(range(len(starts)))
    steps = follower.numbers(node, 4) or [1] * len(starts)
    made = list(source.axes)
    for index, axis in enumerate(axes):
        place = axis % len(made)
        begin, end = _bounds(follower, node, made[place], starts[index], ends[index], steps[index], f"[{axis}]")
        length = simplify(end - begin)
        if abs(steps[index]) > 1:
            length = simplify((length + (abs(steps[index]) - 1)) // abs(steps[index]))
        made[place] = length
        if (
            is_open(begin)
            and not is_same(starts[index], begin)
            and steps[index] > 0
            and not _is_from_end(starts[index], begin, source.axes[place])
        ):
            starts[index] = begin
        if (
            is_open(end)
            and not _is_to_end(ends[index], steps[index])
            and not _is_from_end(ends[index], end, source.axes[place])
            and steps[index] > 0
        ):
            ends[index] = end if not is_same(end, source.axes[place]) else Number(2**63 - 1)
    follower.edit_ints(node, 1, starts)
    follower.edit_ints(node, 2, ends)
    return [Known(tuple(made), _sliced_ints(source, starts, ends, axes, steps))]


def _is_from_end(bound: Expr, place: Expr, axis: Expr) -> bool:
    """Whether the bound is the place already, as a negative number."""
    return isinstance(bound, Number) and bound.value < 0 and is_same(place, axis + bound)


def _is_to_end(end: Expr, step: int) -> bool:
    return isinstance(end, Number) and (end.value >= _END if step > 0 else end.value < -_END)


def _bounds(
    follower: Follower, node: ir.Node, axis: Expr, start: Expr, end: Expr, step: int, slot: str
) -> tuple[Expr, Expr]:
    """Where the slice begins and ends, counted from the front; with a negative step the two are exchanged."""
    if step < 0:
        is_whole = start == Number(-1) or (isinstance(start, Number) and start.value >= _END)
        if not is_open(axis):
            count = len(range(*slice(follower.at(start), follower.at(end), step).indices(follower.at(axis))))
            return Number(0), Number(count * -step)
        if not is_whole or not _is_to_end(end, step):
            raise Contradiction(node, f"it cuts an axis of size {axis} backwards.", dims_in((axis,)))
        return Number(0), axis
    if not is_open(axis) and not is_open(start) and not is_open(end):
        low, high, _ = slice(follower.at(start), follower.at(end), step).indices(follower.at(axis))
        return Number(low), Number(max(low, high))
    return (
        _bound(follower, node, axis, start, f"{slot}.start"),
        axis if _is_to_end(end, step) else _bound(follower, node, axis, end, f"{slot}.end"),
    )


def _bound(follower: Follower, node: ir.Node, axis: Expr, bound: Expr, slot: str) -> Expr:
    if is_open(bound):
        return bound if not is_open(axis) or _is_within(follower, bound, axis) else simplify(Op("min", (bound, axis)))
    number = follower.at(bound)
    if number < 0:
        counted = [(simplify(axis - each),) for each in read_number(follower, -number, axis)]
        return follower.choose(node, counted, slot)[0]
    if number > follower.at(axis):
        raise Contradiction(node, f"it cuts an axis of size {axis} at {number}, beyond its end.", dims_in((axis,)))
    readings: list[Expr] = read_number(follower, number, axis)
    if number == follower.at(axis):  # a slice to the end of the axis is what code means by its size
        readings = [*readings[1:], readings[0]]
    (chosen,) = follower.choose(node, [(each,) for each in readings], slot)
    return chosen


def _is_within(follower: Follower, bound: Expr, axis: Expr) -> bool:
    """Whether a bound is nowhere beyond the end of its axis, as far as sizes around those of the file show."""
    tried = [
        {name: max(size * factor + more, 1) for name, size in follower.sizes.items()}
        for factor in (1, 2, 3)
        for more in (-1, 0, 1, 2)
    ]
    return all(evaluate(bound, sizes) <= evaluate(axis, sizes) for sizes in tried)


def _sliced_ints(
    source: Known, starts: Sequence[Expr], ends: Sequence[Expr], axes: Sequence[int], steps: Sequence[int]
) -> object:
    if source.ints is None or len(source.axes) != 1 or list(axes) != [0] or is_open(starts[0]) or is_open(ends[0]):
        return None
    begin, end = starts[0], ends[0]
    assert isinstance(begin, Number) and isinstance(end, Number)
    return source.ints[begin.value : end.value : steps[0]]


def pad(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    pads = follower.ints(node, 1, "pads")
    assert pads is not None
    axes = follower.numbers(node, 3) or list(range(len(source)))
    made = list(source)
    for index, axis in enumerate(axes):
        have, before, after = source[axis], pads[index], pads[index + len(axes)]
        total = simplify(have + before + after)
        if is_open(have) and not is_open(after) and _may_fill_up(follower, have, before, after):
            (total,) = follower.choose(node, [(total,), (Number(follower.at(total)),)], f"[{axis}]")
            pads[index + len(axes)] = simplify(total - have - before)
        made[axis] = total
    follower.edit_ints(node, 1, pads)
    return [Known(tuple(made))]


def _may_fill_up(follower: Follower, have: Expr, before: Expr, after: Expr) -> bool:
    """Whether padding may have filled a size up to a fixed or a round one: at the end alone, or to a multiple of 8."""
    size, total = follower.at(have), follower.at(have + before + after)
    is_end_only = before == Number(0) and after != Number(0)
    return total != size and (is_end_only or total - size >= size or (total % 8 == 0 and size % 8 != 0))


def split(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    axis = follower.attribute(node, "axis", 0) % len(source)
    have, count = source[axis], len(node.outputs)
    given = follower.ints(node, 1, "split")
    if given is None:
        each = -(-follower.at(have) // count)
        given = [Number(min(each, follower.at(have) - each * index)) for index in range(count)]
        if is_open(have) and not all(is_open(size) for size in given):
            raise Contradiction(node, f"it cuts an axis of size {have} into {count} parts.", dims_in((have,)))
    if is_open(have) and not any(map(is_open, given)):
        given = _split_sizes(follower, node, have, given)
        follower.edit_ints(node, 1, given)
    return [Known((*source[:axis], size, *source[axis + 1 :])) for size in given]


def _split_sizes(follower: Follower, node: ir.Node, have: Expr, given: Sequence[Expr]) -> list[Expr]:
    """All parts but one are numbers; which one follows the axis is a choice, unless only one part has other readings."""
    readings: list[Axes] = []
    for place in range(len(given)):
        rest = sum(follower.at(size) for index, size in enumerate(given) if index != place)
        parts = [simplify(have - rest) if index == place else size for index, size in enumerate(given)]
        others = [read_number(follower, follower.at(size), have) for index, size in enumerate(given) if index != place]
        if all(len(each) == 1 for each in others):
            readings.append(tuple(parts))
    if len(readings) != 1:
        sizes = ", ".join(map(str, given))
        raise Contradiction(
            node, f"it cuts an axis of size {have} into {sizes}: which of them follow it is open.", dims_in((have,))
        )
    return list(follower.choose(node, readings))
