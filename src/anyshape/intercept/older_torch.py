"""What later versions of torch do while a module is traced, for the older versions that anyshape takes.

Before torch 2.13, a slice whose end may lie behind its axis (`table[:, :seq]`) has a length that torch makes up (`u0`), with
conditions on it that nothing proves. Later versions write the smaller of the two sizes instead, as do the functions here.

In torch 2.11, positions and counts that `torch.unique` returns have the dtype of its input while it is traced. In eager mode,
and in later versions, they are int64.

In torch 2.11, the length that pooling gives is a floor division with a condition on its remainder, which changes nothing:
Python's `//` rounds down as it is. Later versions have no such condition.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import Patch, patched

_INDEX = "_compute_slice_index"
_UNIQUE = "_unique"
_POOLED = "div_rtn"


@contextmanager
def rules_of_later_torch() -> Iterator[None]:
    """Enter around a trace with symbolic sizes: slices, pooling and `torch.unique` are traced as later versions of torch do."""
    with patched([*_slice_lengths_from_sizes(), *_whole_positions_of_unique(), *_pooled_lengths_without_conditions()]):
        yield


def _pooled_lengths_without_conditions() -> Iterator[Patch]:
    from torch import _meta_registrations

    if _POOLED in vars(_meta_registrations):
        yield vars(_meta_registrations), _POOLED, operator.floordiv


def _whole_positions_of_unique() -> Iterator[Patch]:
    from torch._subclasses import fake_impls

    space = vars(fake_impls)
    if _UNIQUE not in space or "int64" in space[_UNIQUE].__code__.co_names:
        return
    own = space[_UNIQUE]

    def unique(*args: Any, **kwargs: Any) -> Any:
        import torch

        values, *numbers = own(*args, **kwargs)
        return values, *(each.new_empty(each.shape, dtype=torch.int64) for each in numbers)

    yield space, _UNIQUE, unique


def _slice_lengths_from_sizes() -> Iterator[Patch]:
    import torch
    from torch._subclasses import fake_impls

    space, rules = vars(fake_impls), getattr(fake_impls, "op_implementations_dict", {})
    target: Any = torch.ops.aten.slice.Tensor
    if _INDEX not in space or target not in rules or _has_lengths_of_sizes(space[_INDEX], rules[target]):
        return
    index_rule, slice_rule = _with_smaller(space[_INDEX]), rules[target]

    def slice_forward(
        mode: Any, func: Any, value: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
    ) -> Any:
        is_axis = -value.dim() <= dim < value.dim() and step > 0
        first, last = _resolve(index_rule, value.size(dim), start, end) if is_axis else (None, None)
        if first is None or last is None or _is_ordered(first, last):  # torch raises, or has a length of its own
            return slice_rule(mode, func, value, dim, start, end, step)
        sizes, strides = list(value.size()), list(value.stride())
        sizes[dim] = (torch.sym_max(last - first, 0) + step - 1) // step
        strides[dim] *= step
        return value.as_strided(sizes, strides, value.storage_offset() + first * value.stride(dim))

    yield space, _INDEX, index_rule
    yield rules, target, slice_forward


def _has_lengths_of_sizes(index_rule: Any, slice_rule: Any) -> bool:
    """Whether torch's own functions compute the smaller of end and size, as those of 2.13 do."""
    return "sym_min" in index_rule.__code__.co_names and "sym_max" in slice_rule.__code__.co_names


def _resolve(index_rule: Any, size: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Where a slice begins and ends on an axis of this size; None for what torch cannot decide."""
    first = 0 if start is None else index_rule(size, start)
    is_open = end is None or (isinstance(end, int) and end == sys.maxsize)
    return first, size if is_open else index_rule(size, end)


def _is_ordered(first: Any, last: Any) -> bool:
    """Whether torch can decide `last >= first`, or `first >= last`, without a new condition on sizes."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return bool(guard_or_false(last >= first) or guard_or_false(first >= last))


def _with_smaller(own: Any) -> Any:
    """torch's function for one end of a slice, which gives the smaller of end and size where it gave nothing."""

    def index_rule(size: Any, index: Any) -> Any:
        import torch
        from torch.fx.experimental.symbolic_shapes import guard_or_false

        found = own(size, index)
        if found is not None:
            return found
        if guard_or_false(index >= 0):
            return torch.sym_min(index, size)
        if guard_or_false(index < 0):
            return torch.sym_max(index + size, 0)
        return None

    return index_rule
