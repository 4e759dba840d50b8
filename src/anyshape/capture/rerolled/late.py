"""Steps of which values decide the size -> right before their first use.

    a = [repeat_interleave(x, d) for x, d in ...]        for x, d in ...:
    for i, each in enumerate(a):                   ->        each = repeat_interleave(x, d)
        out[i, : each.shape[0]] = each                       out[i, : each.shape[0]] = each

A loop collects results of one size. Results of different sizes it can only use up, so what uses each has to be in the same
loop. The steps that lead to one such result alone move with it, and so do those
that take it alone; lists stay where they are. Nothing may write into a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyshape.capture.generalized.trace import ANSWER, Result, Step, Tensors, Trace
from anyshape.capture.rerolled.functional import find_write


def open_sizes_late(trace: Trace) -> Trace:
    """The same trace in this order; as it is where no size depends on values, or where a step writes."""
    late = {index: index for index, step in enumerate(trace.steps) if _has_open_size(step)}
    if not late or find_write(trace) is not None:
        return trace
    users: dict[int, set[int]] = {}
    for index, step in enumerate(trace.steps):
        for used in _used(step):
            users.setdefault(used, set()).add(index)
    for index in reversed(range(len(trace.steps))):
        leads_to = {None if _takes_list(trace.steps[user]) else late.get(user) for user in users.get(index, ())}
        (result,) = leads_to if len(leads_to) == 1 else (None,)
        if index not in late and result is not None and not _takes_list(trace.steps[index]):
            late[index] = result
    order: dict[int, int] = {}
    for index in range(len(trace.steps)):
        if index not in late and index not in order:
            placed = _with_what_is_late(trace, index, order)
            results = [step for step in placed if step in late]
            for each in (*placed, *_readers(trace, users, results, {*order, *placed})):
                order[each] = len(order)
    steps = [
        replace(trace.steps[old], leaves=tuple(_moved(leaf, order) for leaf in trace.steps[old].leaves))
        for old in order
    ]
    return replace(trace, steps=tuple(steps))


def _has_open_size(step: Step) -> bool:
    return any(None in (shape or ()) for shape in step.shapes)


def _readers(trace: Trace, users: Mapping[int, set[int]], late: Sequence[int], done: set[int]) -> list[int]:
    """The steps that take one of these results alone and give no open size, or that take alone a size read from one."""
    found: set[int] = set()
    todo = list(late)
    while todo:
        read = todo.pop()
        for user in users.get(read, set()) - done - found:
            step = trace.steps[user]
            if step.target == ANSWER or _has_open_size(step) or _takes_list(step) or {*_used(step)} != {read}:
                continue
            found.add(user)
            if None in step.shapes:
                todo.append(user)
    return sorted(found)


def _takes_list(step: Step) -> bool:
    return any(isinstance(leaf, Tensors) for leaf in step.leaves)


def _with_what_is_late(trace: Trace, index: int, done: Mapping[int, int]) -> list[int]:
    """This step and the steps that it needs and that are not done, in order."""
    found = {index}
    todo = [index]
    while todo:
        needed = {each for each in _used(trace.steps[todo.pop()]) if each not in done and each not in found}
        found |= needed
        todo += needed
    return sorted(found)


def _used(step: Step) -> Iterator[int]:
    for leaf in step.leaves:
        for item in leaf.items if isinstance(leaf, Tensors) else (leaf,):
            if isinstance(item, Result):
                yield item.step


def _moved(leaf: Any, order: dict[int, int]) -> Any:
    if isinstance(leaf, Tensors):
        return Tensors(tuple(_moved(item, order) for item in leaf.items))
    return Result(order[leaf.step], leaf.output) if isinstance(leaf, Result) else leaf
