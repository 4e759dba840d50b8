"""`stack` and `cat` of a list that has runs of a loop's values in it.

    stack([h_0, ..., h_(n-1)], 1)  ->  the loop's collected [n, ...] with its first axis moved to 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.lists import Listed, Run
from anyshape.capture.generalized.operands import Collected, Operand

if TYPE_CHECKING:
    from anyshape.capture.generalized.frames import Frame

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
    single = single_of(run.content) if is_stack else None
    node = frame.tensor(Collected(run.loop, run.content, (axis, is_stack)) if single is None else Collected(run.loop, single))
    start, count = scope.size(run.start), scope.size(run.count)
    if run.step < 0:
        node = scope.call(_aten.flip.default, node, [0])
        trips = scope.size(frame.explained.trips[run.loop])
        start = _sub(frame, _sub(frame, trips, 1), start)
    if run.count != frame.explained.trips[run.loop] or run.step not in (1, -1):
        stride = abs(run.step)
        end = _add(frame, start, _times(frame, count, stride))
        node = scope.call(_aten.slice.Tensor, node, 0, start, end, stride)
    if single is not None:  # [n, ...] -> [..., n, ...]
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        return scope.call(_aten.permute.default, node, order) if axis else node
    # [n, ..., m, ...] -> [..., n, m, ...] -> [..., n*m, ...]
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    node = scope.call(_aten.permute.default, node, order)
    return scope.call(_aten.flatten.using_ints, node, axis, axis + 1)


def _apply(frame: Frame, operation: Any, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return operation(left, right)
    return frame.scope.call(operation, left, right)


def _add(frame: Frame, left: Any, right: Any) -> Any:
    import operator

    return _apply(frame, operator.add, left, right)


def _sub(frame: Frame, left: Any, right: Any) -> Any:
    import operator

    return _apply(frame, operator.sub, left, right)


def _times(frame: Frame, left: Any, right: Any) -> Any:
    import operator

    return _apply(frame, operator.mul, left, right)
