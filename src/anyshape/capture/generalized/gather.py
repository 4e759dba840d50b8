"""`stack` and `cat` of a list that has runs of a loop's values in it.

stack([h_0, ..., h_(n-1)], 1)  ->  the loop's collected [n, ...] with its first axis moved to 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.lists import Listed, Run
from anyshape.capture.generalized.not_learned import edge_without_rule
from anyshape.capture.generalized.operands import Collected, Operand
from anyshape.capture.generalized.template import Place, walk
from anyshape.domain import Number

if TYPE_CHECKING:
    from anyshape.capture.generalized.graph_frames import Frame

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
