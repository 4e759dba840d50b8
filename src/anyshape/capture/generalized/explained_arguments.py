"""Every argument of every place of a template, explained: tensors and lists of tensors by where they come from, numbers
by expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.fit_reals import Real
from anyshape.capture.generalized.not_learned import edge_without_rule, number_without_rule
from anyshape.capture.generalized.resolver import Resolver, Unresolved
from anyshape.capture.generalized.template import Collected, Operand, Place, Repeated, Seen, Template, first_step, walk
from anyshape.capture.generalized.template_fits import Fits
from anyshape.capture.generalized.trace import TENSOR_KINDS, Tensors
from anyshape.capture.generalized.values_in_traces import writes
from anyshape.domain import Expr, Number, Op

if TYPE_CHECKING:
    from anyshape.capture.generalized.graph_frames import Frame


@dataclass(frozen=True)
class Explained:
    """A template with its arguments: `arguments[place]` has one entry for each leaf of the place's step."""

    template: Template
    resolver: Resolver
    fits: Fits
    arguments: dict[Place, tuple[Any, ...]]
    trips: dict[Repeated, Expr]

    @cached_property
    def is_functional(self) -> bool:
        """Whether no step writes into a tensor."""
        return not any(writes(place.step.target) for place in self.arguments)

    def rules(self) -> dict[tuple[int, int], str]:
        """Every number that is not the same everywhere, as text: what new traces must leave as it is."""
        found: dict[tuple[int, int], str] = {}
        for place, arguments in self.arguments.items():
            for index, argument in enumerate(arguments):
                if isinstance(argument, (Expr, Real)):
                    found[place.number, index] = str(argument)
        for index, trips in enumerate(self.trips.values()):
            found[-1, index] = str(trips)
        return found


def explain_template(template: Template) -> Explained:
    """All arguments of all places. Raises NotCaptured with the line of the first that nothing explains."""
    counters = [
        name for item in walk(template.items) if isinstance(item, Repeated) for name in (item.counter, item.power)
    ]
    fits = Fits(counters)
    resolver = Resolver(template, fits)
    arguments: dict[Place, tuple[Any, ...]] = {}
    trips: dict[Repeated, Expr] = {}
    for item in walk(template.items):
        if isinstance(item, Place):
            arguments[item] = tuple(_explain(item, index, resolver) for index in range(len(item.step.leaves)))
        else:
            found = fits.integers([(seen.point, count) for seen, count in item.trips])
            if found is None:
                counts = [(seen.point, count) for seen, count in item.trips]
                raise number_without_rule(first_step(item), counts)
            trips[item] = found
    return Explained(template, resolver, fits, arguments, trips)


def _explain(place: Place, index: int, resolver: Resolver) -> Any:
    sightings = [(occurrence.seen, occurrence.step.leaves[index]) for occurrence in place.occurrences]
    leaf = sightings[0][1]
    try:
        if isinstance(leaf, Tensors):
            return resolve_list(resolver, [(seen, tensors.items) for seen, tensors in sightings], place.loops)
        if isinstance(leaf, TENSOR_KINDS):
            return resolver.resolve(sightings, place.loops)
    except Unresolved:
        raise edge_without_rule(place.step) from None
    if isinstance(leaf, bool) or not isinstance(leaf, (int, float)):
        return leaf
    points = [(seen.point, value) for seen, value in sightings]
    if len({value for _, value in points}) == 1:
        return Number(leaf) if isinstance(leaf, int) else leaf
    near = _sizes_nearby(place, resolver)
    found = resolver.fits.integers(points, near) if isinstance(leaf, int) else resolver.fits.reals(points, near)
    if found is None:
        raise number_without_rule(place.step, points)
    return found


def _sizes_nearby(place: Place, resolver: Resolver) -> tuple[Expr, ...]:
    """The sizes of what a step takes: its numbers are most often made of them."""
    found: dict[Expr, None] = {}
    for index, leaf in enumerate(place.step.leaves):
        if not isinstance(leaf, TENSOR_KINDS):
            continue
        shapes = [
            (each.seen.point, resolver.template.traces[each.seen.trace].shape_of(each.step.leaves[index]) or ())
            for each in place.occurrences
        ]
        for axis in range(min(len(shape) for _, shape in shapes)):
            size = resolver.fits.integers([(point, shape[axis]) for point, shape in shapes])
            if isinstance(size, Op):
                found[size] = None
    return tuple(found)


__all__ = ["Explained", "Listed", "explain_template"]


@dataclass(frozen=True)
class Run:
    """What a loop gave in `count` of its repetitions, from `start` on, `step` apart; `content` is one repetition's.

    `is_even`: all repetitions gave the same sizes.
    """

    loop: Repeated
    content: Listed
    start: Expr
    count: Expr
    step: Expr
    is_even: bool


@dataclass(frozen=True)
class Listed:
    """A list, in order."""

    parts: tuple[Operand | Run, ...]


Items = tuple[Any, ...]


def resolve_list(resolver: Resolver, sightings: Sequence[tuple[Seen, Items]], loops: tuple[Repeated, ...]) -> Listed:
    """The list that explains all sightings. Raises Unresolved."""
    split = [(seen, _segments(resolver, seen, items, loops)) for seen, items in sightings]
    pattern = max((segments for _, segments in split), key=len)
    kinds = [segment.loop for segment in pattern]
    columns: list[list[tuple[Seen, _Segment]]] = [[] for _ in pattern]
    for seen, segments in split:
        rest = iter(segments)
        segment = next(rest, None)
        for column, loop in zip(columns, kinds, strict=True):
            if segment is not None and segment.loop is loop:
                column.append((seen, segment))
                segment = next(rest, None)
            elif loop is not None:
                column.append((seen, _Segment(loop, [])))  # the loop did not run here
            else:
                raise Unresolved
        if segment is not None:
            raise Unresolved
    return Listed(tuple(_part(resolver, column, loops) for column in columns))


@dataclass
class _Segment:
    """Consecutive items from one finished loop, or a single item where loop is None."""

    loop: Repeated | None
    items: list[tuple[int, Any]]


def _segments(resolver: Resolver, seen: Seen, items: Items, loops: tuple[Repeated, ...]) -> list[_Segment]:
    segments: list[_Segment] = []
    for item in items:
        loop = resolver.finished_loop(seen, item, loops)
        counter = resolver.key(seen, item)[1][len(loop.loops)] if loop is not None else 0
        if loop is not None and segments and segments[-1].loop is loop:
            segments[-1].items.append((counter, item))
        else:
            segments.append(_Segment(loop, [(counter, item)]))
    return segments


def _part(resolver: Resolver, column: list[tuple[Seen, _Segment]], loops: tuple[Repeated, ...]) -> Operand | Run:
    loop = column[0][1].loop
    if loop is None:
        return resolver.resolve([(seen, segment.items[0][1]) for seen, segment in column], loops)
    if all(len(segment.items) == 1 for _, segment in column):
        return resolver.resolve([(seen, segment.items[0][1]) for seen, segment in column], loops)
    inside: list[tuple[Seen, Items]] = []
    starts, counts, steps = [], [], []
    for seen, segment in column:
        groups = _groups(segment.items)
        counters = [counter for counter, _ in groups]
        counts.append((seen.point, len(groups)))
        if groups:
            starts.append((seen.point, counters[0]))
        apart = {after - before for before, after in pairwise(counters)}
        if len(apart) > 1:
            raise Unresolved
        steps += [(seen.point, step) for step in apart]
        for counter, items in groups:
            inside.append(
                (resolver.moved(seen, (*seen.counters[: len(loop.loops)], counter), (*loop.loops, loop)), items)
            )
    start, count = resolver.fits.integers(starts), resolver.fits.integers(counts)
    step = resolver.fits.integers(steps) if steps else Number(1)
    if start is None or count is None or step is None:
        raise Unresolved
    content = resolve_list(resolver, inside, (*loop.loops, loop))
    return Run(loop, content, start, count, step, all(_is_even(resolver, seen, segment) for seen, segment in column))


def _is_even(resolver: Resolver, seen: Seen, segment: _Segment) -> bool:
    trace = resolver.template.traces[seen.trace]
    groups = _groups(segment.items)
    shapes = {tuple(trace.shape_of(item) for item in items) for _, items in groups}
    return len(shapes) <= 1 and not any(None in (shape or ()) for items in shapes for shape in items)


def _groups(items: list[tuple[int, Any]]) -> list[tuple[int, Items]]:
    """Items of the same repetition together, in order of appearance."""
    groups: list[tuple[int, list[Any]]] = []
    for counter, item in items:
        if groups and groups[-1][0] == counter:
            groups[-1][1].append(item)
        else:
            groups.append((counter, [item]))
    return [(counter, tuple(group)) for counter, group in groups]


_aten = torch.ops.aten


def gather(frame: Frame, target: Any, listed: Listed, rest: Sequence[Any], rank: int) -> Node:
    """The node for stack or cat of a list; `rank` is that of the result."""
    axis = (rest[0] if rest else 0) % rank
    if not any(isinstance(part, Run) for part in listed.parts):
        return frame.scope.call(target, [frame.tensor(part) for part in listed.parts], axis)  # type: ignore[arg-type]
    is_stack = target is _aten.stack.default
    pieces = [
        _run(frame, part, axis, is_stack, rank)
        if isinstance(part, Run)
        else _single(frame, frame.tensor(part), axis, is_stack)
        for part in listed.parts
    ]
    return pieces[0] if len(pieces) == 1 else frame.scope.call(_aten.cat.default, pieces, axis)


def single_of(listed: Listed) -> Operand | None:
    """The one tensor of a list that has no other; None where there are more, or runs."""
    return listed.parts[0] if len(listed.parts) == 1 and not isinstance(listed.parts[0], Run) else None


def _single(frame: Frame, node: Node, axis: int, is_stack: bool) -> Node:
    return frame.scope.call(_aten.unsqueeze.default, node, axis) if is_stack else node


def _run(frame: Frame, run: Run, axis: int, is_stack: bool, rank: int) -> Node:
    """One run as a tensor to be joined along the axis."""
    scope = frame.scope
    if not run.is_even and not is_stack:
        return _grown(frame, run, axis)
    single = single_of(run.content) if is_stack else None
    node = frame.tensor(
        Collected(run.loop, run.content, (axis, is_stack)) if single is None else Collected(run.loop, single)
    )
    if run.count != frame.explained.trips[run.loop] or run.step != Number(1):
        node = _chosen(frame, node, run)
    if single is not None:  # [n, ...] -> [..., n, ...]
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        return scope.call(_aten.permute.default, node, order) if axis else node
    # [n, ..., m, ...] -> [..., n, m, ...] -> [..., n*m, ...]
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    node = scope.call(_aten.permute.default, node, order)
    return scope.call(_aten.flatten.using_ints, node, axis, axis + 1)


def _grown(frame: Frame, run: Run, axis: int) -> Node:
    """Repetitions of different sizes: the loop has joined them already, all of them and in order."""
    if run.start != Number(0) or run.step != Number(1) or run.count != frame.explained.trips[run.loop]:
        place = next(item for item in walk(run.loop.body) if isinstance(item, Place))
        raise edge_without_rule(place.step)
    return frame.tensor(Collected(run.loop, run.content, (axis, False), grown=True))


def _chosen(frame: Frame, node: Node, run: Run) -> Node:
    """The repetitions start, start + step, ... of all that were collected."""
    scope = frame.scope
    places = scope.call(_aten.arange.default, scope.size(run.count))
    places = scope.call(_aten.mul.Tensor, places, scope.size(run.step))
    places = scope.call(_aten.add.Tensor, places, scope.size(run.start))
    return scope.call(_aten.index_select.default, node, 0, places)
