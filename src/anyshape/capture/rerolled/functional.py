"""Writes into tensors -> new tensors, step by step, so that a loop that fills a table carries the table.

    o[:, t] = v     select(o, 1, t); copy_(that, v)   ->   o' = o with v at t;  later reads of o are reads of o'

A write through a view goes back up the views to what they are views of. Where that is not known, the step stays as it is
and `find_write` reports it: a write inside a loop's body must not be left to chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from anyshape.capture.generalized.trace import TENSOR_KINDS, Result, Step, Tensors, Trace
from anyshape.capture.generalized.values_in_traces import writes
from anyshape.leaves.own_operators import put, put_slice

_aten = torch.ops.aten


class _NoWayBack(Exception):
    """A view whose writes cannot be brought back to what it is a view of."""


def find_write(trace: Trace) -> Step | None:
    """The first step that writes into a tensor, if any is left."""
    return next((step for step in trace.steps if writes(step.target)), None)


def without_writes(trace: Trace) -> Trace:
    """The same trace with new tensors in place of writes; as it is where that cannot be done."""
    if find_write(trace) is None:
        return trace
    try:
        return _live(replace(trace, steps=tuple(_Rewriting(trace).run())))
    except _NoWayBack:
        return trace


class _Rewriting:
    """One walk over a trace. A value of the old trace is replaced by its newest version in the new one."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._steps: list[Step] = []
        self._new: dict[Any, Any] = {}
        self._view_of: dict[Any, tuple[Any, Step]] = {}
        self._version: dict[Any, int] = {}
        self._made_at: dict[Any, int] = {}

    def run(self) -> list[Step]:
        for index, step in enumerate(self._trace.steps):
            old = Result(index)
            if not isinstance(step.target, str) and writes(step.target):
                self._write(old, step)
                continue
            base = step.leaves[0] if step.leaves and isinstance(step.leaves[0], TENSOR_KINDS) else None
            self._new[old] = self._append(replace(step, leaves=tuple(self._use(leaf) for leaf in step.leaves)))
            if base is not None and step.target in _VIEWS:
                self._view_of[old] = base, step
                self._made_at[old] = self._version.get(self._root(base), 0)
        return self._steps

    def _append(self, step: Step) -> Result:
        self._steps.append(step)
        return Result(len(self._steps) - 1)

    def _root(self, value: Any) -> Any:
        while value in self._view_of:
            value = self._view_of[value][0]
        return value

    def _use(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensors):
            return Tensors(tuple(self._use(item) for item in leaf.items))
        if not isinstance(leaf, TENSOR_KINDS):
            return leaf
        if isinstance(leaf, Result) and leaf.output is not None and leaf not in self._new:
            whole = self._new[Result(leaf.step)]
            return Result(whole.step, leaf.output)
        if leaf in self._view_of and self._made_at[leaf] < self._version.get(self._root(leaf), 0):
            base, step = self._view_of[leaf]
            rest = tuple(self._use(each) for each in step.leaves[1:])
            self._new[leaf] = self._append(replace(step, leaves=(self._use(base), *rest)))
            self._made_at[leaf] = self._version[self._root(leaf)]
        return self._new.get(leaf, leaf)

    def _write(self, old: Result, step: Step) -> None:
        """op_(v, ...)  ->  v' = op(v, ...), and everything that v is a view of, with v' in it."""
        target = step.leaves[0]
        if isinstance(target, Result) and target.output is not None and not self._is_fresh(target):
            raise _NoWayBack
        shape, dtype = self._trace.shape_of(target), self._trace.dtype_of(target)
        updated: Any = self._append(self._updated(step, shape, dtype))
        value = target
        while value in self._view_of:
            base, view = self._view_of[value]
            back = _VIEWS[view.target](self, view, self._use(base), updated, base)
            self._new[value] = updated
            updated, value = back, base
        self._new[value] = updated
        self._version[value] = self._version.get(value, 0) + 1
        view_chain = target
        while view_chain in self._view_of:
            self._made_at[view_chain] = self._version[value]
            view_chain = self._view_of[view_chain][0]
        self._alias(old, target)

    def _is_fresh(self, value: Result) -> bool:
        """Whether an operator of several outputs made this one anew: topk did, so that no view leads to it."""
        schema = getattr(self._trace.steps[value.step].target, "_schema", None)
        return schema is not None and all(returned.alias_info is None for returned in schema.returns)

    def _alias(self, old: Result, target: Any) -> None:
        """What a writing step gives back is what it wrote into."""
        if target in self._view_of:
            self._view_of[old] = self._view_of[target]
            self._made_at[old] = self._made_at[target]
        else:
            self._view_of[old] = target, _same_step(self._steps[-1])
            self._made_at[old] = -1
        self._new[old] = self._new[target]

    def _updated(self, step: Step, shape: Any, dtype: Any) -> Step:
        leaves = tuple(self._use(leaf) for leaf in step.leaves)
        if step.target is _aten.copy_.default:
            return self._copied(step, leaves[1], shape, dtype)
        if step.target is _aten.zero_.default:
            return replace(step, target=_aten.zeros_like.default, leaves=leaves)
        packet = getattr(_aten, step.target._opname.removesuffix("_"), None)
        functional = getattr(packet, step.target._overloadname, None) if packet is not None else None
        if functional is None or writes(functional):
            raise _NoWayBack
        return replace(step, target=functional, leaves=leaves)

    def _copied(self, step: Step, source: Any, shape: Any, dtype: torch.dtype) -> Step:
        """copy_(v, s)  ->  s in the shape and the dtype of v"""
        if not isinstance(source, TENSOR_KINDS):
            raise _NoWayBack
        cast = self._append(_call(step, _aten.to.dtype, (source, dtype), shape, dtype))
        return _call(step, _aten.expand.default, (cast, list(shape)), shape, dtype)

    def call(self, like: Step, target: Any, args: tuple[Any, ...], base: Any) -> Result:
        """A new step that gives a tensor like `base`."""
        return self._append(_call(like, target, args, self._trace.shape_of(base), self._trace.dtype_of(base)))


def _call(like: Step, target: Any, args: tuple[Any, ...], shape: Any, dtype: Any) -> Step:
    leaves, spec = tree_flatten((args, {}))
    return Step(target, tuple(leaves), spec, like.stack, (tuple(shape),), (dtype,))


def _arguments(view: Step) -> tuple[Any, ...]:
    args, _ = tree_unflatten(list(view.leaves), view.spec)
    return tuple(args)


def _back_select(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    _, axis, index = _arguments(view)
    shape = rewriting._trace.shape_of(old_base) or ()
    axis %= len(shape)
    return rewriting.call(view, put, (base, new, axis, index % shape[axis]), old_base)


def _back_slice(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    _, axis, start, end, step = (
        (*_arguments(view), 0, 0, None, 1)[:5] if len(_arguments(view)) == 1 else (*_arguments(view), 1)[:5]
    )
    shape = rewriting._trace.shape_of(old_base) or ()
    axis %= len(shape)
    first, last, _ = slice(start, end).indices(shape[axis])
    if step != 1:
        return rewriting.call(view, _aten.slice_scatter.default, (base, new, axis, first, last, step), old_base)
    return rewriting.call(view, put_slice, (base, new, axis, first), old_base)


def _back_transpose(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    _, first, second = _arguments(view)
    return rewriting.call(view, _aten.transpose.int, (new, first, second), old_base)


def _back_unsqueeze(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    _, axis = _arguments(view)
    return rewriting.call(view, _aten.squeeze.dim, (new, axis), old_base)


def _back_reshape(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    return rewriting.call(view, _aten.reshape.default, (new, list(rewriting._trace.shape_of(old_base) or ())), old_base)


def _back_nothing(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    result: Result = new
    return result


def _no_way(rewriting: _Rewriting, view: Step, base: Any, new: Any, old_base: Any) -> Result:
    raise _NoWayBack


def _same_step(step: Step) -> Step:
    leaves, spec = tree_flatten(((step.leaves[0] if step.leaves else None,), {}))
    return replace(step, target=_aten.alias.default, leaves=tuple(leaves), spec=spec)


_VIEWS: dict[Any, Any] = {
    _aten.select.int: _back_select,
    _aten.slice.Tensor: _back_slice,
    _aten.transpose.int: _back_transpose,
    _aten.unsqueeze.default: _back_unsqueeze,
    _aten.view.default: _back_reshape,
    _aten.reshape.default: _no_way,  # a view or a copy, as the sizes will have it
    _aten.contiguous.default: _no_way,
    _aten.squeeze.dim: _no_way,
    _aten.permute.default: _no_way,
    _aten.expand.default: _no_way,
    _aten.diagonal.default: _no_way,
    _aten.flatten.using_ints: _no_way,
    _aten.alias.default: _back_nothing,
}


def _live(trace: Trace) -> Trace:
    """Only the steps that the answer depends on: the views that were written through are not read any more."""
    needed: set[int] = set()
    todo = [len(trace.steps) - 1]
    while todo:
        index = todo.pop()
        if index in needed:
            continue
        needed.add(index)
        todo += [result.step for leaf in trace.steps[index].leaves for result in _results(leaf)]
    order = {old: new for new, old in enumerate(sorted(needed))}
    steps = [
        replace(trace.steps[old], leaves=tuple(_moved(leaf, order) for leaf in trace.steps[old].leaves))
        for old in order
    ]
    return replace(trace, steps=tuple(steps))


def _results(leaf: Any) -> Sequence[Result]:
    if isinstance(leaf, Tensors):
        return [item for item in leaf.items if isinstance(item, Result)]
    return [leaf] if isinstance(leaf, Result) else []


def _moved(leaf: Any, order: dict[int, int]) -> Any:
    if isinstance(leaf, Tensors):
        return Tensors(tuple(_moved(item, order) for item in leaf.items))
    return Result(order[leaf.step], leaf.output) if isinstance(leaf, Result) else leaf
