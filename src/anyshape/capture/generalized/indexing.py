"""Python's `x[...]` as the views it stands for, the same ones at all sizes.

torch leaves out a slice that happens to take everything (`x[:, :8]` of eight columns), so that traces at different sizes
would differ. Here every slice with a bound is a slice.
"""

from __future__ import annotations

from typing import Any

import torch


def basic_index(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """The view that numbers, slices, None and ... make; None where the index has tensors or lists in it."""
    items = _full(tensor, index)
    if items is None:
        return None
    view, axis = tensor, 0
    for item in items:
        if item is None:
            view, axis = torch.ops.aten.unsqueeze.default(view, axis), axis + 1
        elif isinstance(item, slice):
            view, axis = _sliced(view, axis, item), axis + 1
        else:
            view = torch.ops.aten.select.int(view, axis, item)
    return view


def assign(tensor: torch.Tensor, index: Any, value: Any) -> bool:
    """`tensor[index] = value` by writing into a view, or through one tensor of positions; False where it is neither."""
    given = value if isinstance(value, torch.Tensor) else None
    view = basic_index(tensor, index)
    if view is not None:
        if given is None:
            torch.ops.aten.fill_.Scalar(view, value)
            return True
        if given.ndim > view.ndim:
            return False
        torch.ops.aten.copy_.default(view, given)
        return True
    is_positions = isinstance(index, torch.Tensor) and index.dtype in (torch.int64, torch.int32)
    if not is_positions or given is None or given.ndim > index.ndim + tensor.ndim - 1 or given.dtype != tensor.dtype:
        return False
    torch.ops.aten.index_put_.default(tensor, [index], given)
    return True


def _full(tensor: torch.Tensor, index: Any) -> list[Any] | None:
    """The index with ... written out; None where it is not basic."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(item, (bool, torch.Tensor)) or not _is_basic(item) for item in items):
        return None
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if Ellipsis in items:
        position = items.index(Ellipsis)
        items[position : position + 1] = [slice(None)] * (tensor.ndim - used)
    return items if used <= tensor.ndim and Ellipsis not in items else None


def _is_basic(item: Any) -> bool:
    if isinstance(item, slice):
        return all(part is None or _is_number(part) for part in (item.start, item.stop, item.step))
    return item is None or item is Ellipsis or _is_number(item)


def _is_number(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _sliced(view: torch.Tensor, axis: int, item: slice) -> torch.Tensor:
    if item == slice(None):
        return view
    if item.step is not None and item.step <= 0:
        return view[(slice(None),) * axis + (item,)]  # torch's own error
    return torch.ops.aten.slice.Tensor(view, axis, item.start, item.stop, 1 if item.step is None else item.step)
