"""Lists of tensors that `stack` and `cat` take: single tensors, and runs of what a loop gave in its repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from anyshape.capture.generalized.operands import Operand
from anyshape.capture.generalized.resolver import Resolver, Unresolved
from anyshape.capture.generalized.template import Repeated, Seen
from anyshape.domain import Expr, Number


@dataclass(frozen=True)
class Run:
    """What a loop gave in `count` of its repetitions, from `start` on, `step` apart; `content` is one repetition's.

    `is_even` says that all repetitions gave the same sizes.
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
    return len({tuple(trace.shape_of(item) for item in items) for _, items in groups}) <= 1


def _groups(items: list[tuple[int, Any]]) -> list[tuple[int, Items]]:
    """Items of the same repetition together, in order of appearance."""
    groups: list[tuple[int, list[Any]]] = []
    for counter, item in items:
        if groups and groups[-1][0] == counter:
            groups[-1][1].append(item)
        else:
            groups.append((counter, [item]))
    return [(counter, tuple(group)) for counter, group in groups]
