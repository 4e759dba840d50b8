"""Rules for operators whose inputs are sizes: Reshape, Expand, Tile, Resize, Range and ConstantOfShape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import onnx_ir as ir

from anyshape.domain import Expr, Number, simplify
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_shapes import Axes, Contradiction, Known, dims_in, is_open, is_same, product, sizes_like
from anyshape.repair.reshape_readings import find_readings


def reshape(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.input(node, 0)
    target = follower.ints(node, 1, "shape")
    assert source is not None and target is not None
    keeps_zero = bool(follower.attribute(node, "allowzero", 0))
    wanted: list[Expr | None] = []
    for index, each in enumerate(target):
        is_copy = each == Number(0) and not keeps_zero
        wanted.append(source.axes[index] if is_copy else None if each == Number(-1) else each)
    if None in wanted:
        rest = product(each for each in wanted if each is not None)
        count = follower.at(product(source.axes))
        wanted[wanted.index(None)] = Number(count // max(follower.at(rest), 1))
    sizes = [follower.at(each) for each in wanted if each is not None]
    given = [each for each in wanted if each is not None]
    readings = [axes for axes in find_readings(source.axes, sizes, follower.sizes) if _keeps(axes, given)]
    if not readings:
        raise Contradiction(
            node,
            f"no shape like {sizes} keeps the elements of [{', '.join(map(str, source.axes))}].",
            dims_in(source.axes),
        )
    axes = follower.choose(node, readings)
    axes = follower.choose(node, [axes, *_with_numbers(source.axes, axes, target)], "[-1]", acts=True, is_asked=True)
    if any(map(is_open, axes)):
        follower.edit_ints(node, 1, _shortest(source.axes, axes, target, keeps_zero=keeps_zero))
    ints = source.ints.reshape(sizes) if source.ints is not None and not any(map(is_open, axes)) else None
    return [Known(axes, ints)]


def _with_numbers(source: Axes, axes: Axes, target: Sequence[Expr]) -> Iterator[Axes]:
    """The readings in which a number of the target is that number at all sizes, and a -1 that begins it takes what is left.

    `reshape(-1, 7, 4)` cuts pieces of 7 as well as it keeps an axis of 7. Elsewhere, as in `view(batch, -1, 64)`, the -1 is
    one axis, and the numbers are the sizes beside it.
    """
    left = 0
    for place in range(1, len(target) if target and target[left] == Number(-1) else 1):
        if is_open(axes[place]) and isinstance(target[place], Number) and target[place] not in (Number(0), Number(1)):
            made = [*axes[:place], target[place], *axes[place + 1 :]]
            rest = product(each for index, each in enumerate(made) if index != left)
            made[left] = simplify(product(source) // rest)
            yield tuple(made)


def _keeps(axes: Axes, given: Sequence[Expr]) -> bool:
    """Whether a reading keeps the sizes that the file itself computes."""
    return all(is_same(axis, each) for axis, each in zip(axes, given, strict=True) if is_open(each))


def _shortest(source: Axes, axes: Axes, target: Sequence[Expr], *, keeps_zero: bool) -> list[Expr]:
    """The target without arithmetic where that is possible: 0 copies an axis, one -1 is what is left."""
    if all(is_same(one, other) for one, other in zip(axes, target, strict=True) if is_open(one)) and not any(
        each in (Number(-1),) for each in target
    ):
        return list(axes)
    found = [
        Number(0) if not keeps_zero and index < len(source) and is_open(axis) and is_same(axis, source[index]) else axis
        for index, axis in enumerate(axes)
    ]
    opened = [index for index, axis in enumerate(found) if is_open(axis)]
    if len(opened) == 1:
        found[opened[0]] = Number(-1)
    return found


def expand(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    target = follower.ints(node, 1)
    assert target is not None
    rank = max(len(source), len(target))
    before: list[Expr] = [*[Number(1)] * (rank - len(source)), *source]
    wanted: list[Expr] = [*[Number(1)] * (rank - len(target)), *target]
    axes: list[Expr] = []
    vector: list[Expr] = []
    for place, (have, want) in enumerate(zip(before, wanted, strict=True)):
        if is_open(have):
            if (is_open(want) and not is_same(have, want)) or follower.at(want) not in (1, follower.at(have)):
                raise Contradiction(node, f"{have} is expanded to {want}.", dims_in((have, want)))
            axes.append(have)
            vector.append(Number(1))
        elif is_open(want) or follower.at(have) != 1:
            if is_open(want) and have != Number(1):
                follower.edit_table(node, 0, {place - rank + len(source): want}, may_broadcast=True)
            axes.append(want if is_open(want) else have)
            vector.append(want)
        else:
            readings = [(each,) for each in (*sizes_like(follower, follower.at(want)), want)]
            (chosen,) = follower.choose(node, readings, f"[{place}]")
            axes.append(chosen)
            vector.append(chosen)
    follower.edit_ints(node, 1, vector)
    return [Known(tuple(axes))]


def tile(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    repeats = follower.ints(node, 1)
    assert repeats is not None
    axes: list[Expr] = []
    vector: list[Expr] = []
    for place, (have, times) in enumerate(zip(source, repeats, strict=True)):
        chosen = times
        if not is_open(times) and times != Number(1):
            readings = [(each,) for each in (*sizes_like(follower, follower.at(times)), times)]
            (chosen,) = follower.choose(node, readings, f"[{place}]")
        axes.append(simplify(have * chosen))
        vector.append(chosen)
    follower.edit_ints(node, 1, vector)
    return [Known(tuple(axes))]


def resize(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    sizes = follower.input(node, 3)
    if sizes is not None and sizes.axes != (Number(0),):
        return [Known(_resized(follower, node, source))]
    index = 1 if node.op_type == "Upsample" else 2
    scales = follower.input(node, index)
    if scales is None or not scales.is_constant:
        raise Contradiction(node, "its scales are computed from values.", dims_in(source))
    if follower.attribute(node, "axes") is not None and len(scales.array()) != len(source):
        raise Contradiction(node, "it scales some of the axes only.", dims_in(source))
    made = []
    for axis, scale in zip(source, scales.array().reshape(-1), strict=True):
        factor = Fraction(float(scale)).limit_denominator(64)
        if is_open(axis) and float(factor) != float(scale):
            raise Contradiction(node, f"it scales {axis} by {scale:g}, which is no short fraction.", dims_in((axis,)))
        made.append(
            simplify((axis * factor.numerator) // factor.denominator)
            if is_open(axis)
            else Number(int(follower.at(axis) * float(scale)))
        )
    return [Known(tuple(made))]


def _resized(follower: Follower, node: ir.Node, source: Axes) -> Axes:
    """The target sizes of a Resize: multiples of the source's, other sizes of the graph, or numbers."""
    given = follower.ints(node, 3)
    assert given is not None
    places = follower.attribute(node, "axes") or list(range(len(source)))
    made = list(source)
    for index, place in enumerate(places):
        have, want = source[place], given[index]
        number = follower.at(want)
        if is_open(want) or (
            place < 2 and number == follower.at(have)
        ):  # pictures are resized, not batches and channels
            made[place] = want if is_open(want) else have
            continue
        options = [each for each in sizes_like(follower, number) if not is_open(have) or _is_about(each, have)]
        if is_open(have) and number % follower.at(have) == 0:
            options.append(simplify(have * (number // follower.at(have))))
        if is_open(have) and follower.at(have) % number == 0 and number != follower.at(have):
            options.append(simplify(have // (follower.at(have) // number)))
        if not is_open(have) and number == follower.at(have):
            options = []
        (made[place],) = follower.choose(node, [(each,) for each in (*options, want)], f"[{place}]")
    follower.edit_ints(node, 3, [made[place] for place in places])
    return tuple(made)


def _is_about(option: Expr, have: Expr) -> bool:
    """Whether a size follows the dims of an axis, and no others."""
    return dims_in((option,)) <= dims_in((have,))


def range_(follower: Follower, node: ir.Node) -> list[Known]:
    bounds = [follower.ints(node, index) for index in range(3)]
    (start,), (limit,), (step,) = (each or [Number(0)] for each in bounds)
    if not isinstance(step, Number) or step.value == 0:
        raise Contradiction(node, "its step depends on sizes.")
    length = simplify((limit - start + (step.value - 1)) // step.value) if step.value > 0 else None
    if length is None:
        raise Contradiction(node, "it counts down.", dims_in((start, limit)))
    return [Known((length,))]


def constant_of_shape(follower: Follower, node: ir.Node) -> list[Known]:
    sizes = follower.ints(node, 0)
    assert sizes is not None
    return [Known(tuple(sizes))]
