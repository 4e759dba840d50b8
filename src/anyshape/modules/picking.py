"""Indices with ints that are tensors: `x[:, k]` looked up by a tensor of one place, ends of slices made ints.

x[:, k]     ->     x[:, k.reshape(1)].squeeze(1): from the end where k is negative, an error beyond either end
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt


def map_slices(index: Any, change: Callable[[Any], Any]) -> Any:
    """The index with the ends and steps of its slices changed."""
    if isinstance(index, tuple):
        return tuple(map_slices(item, change) for item in index)
    if isinstance(index, slice):
        return slice(change(index.start), change(index.stop), change(index.step))
    return index


def slice_ends(index: Any) -> list[Any]:
    """The ends and steps of the slices of an index."""
    slices = [item for item in (index if isinstance(index, tuple) else (index,)) if isinstance(item, slice)]
    return [end for each in slices for end in (each.start, each.stop, each.step)]


def map_index(index: Any, change: Callable[[Any], Any]) -> Any:
    """The index with each of its items changed; slices as they are."""
    if isinstance(index, (tuple, list)):
        return type(index)(map_index(item, change) for item in index)
    return index if isinstance(index, slice) else change(index)


def at_numbers(tensor: torch.Tensor, index: Any, is_number: Callable[[Any], bool]) -> torch.Tensor | None:
    """`tensor[index]`, where items of the index are tensors that count as ints; None if there are none, or others beside."""
    items = index if isinstance(index, tuple) else (index,)
    if not any(is_number(item) for item in items) or not all(_is_plain(item) or is_number(item) for item in items):
        return None
    result = tensor[tuple(slice(None) if is_number(item) else item for item in items)]
    for place, item in reversed(list(enumerate(items))):
        if is_number(item):
            axis = _axis(items, place, result.ndim, is_number)
            result = result[(slice(None),) * axis + (item.to(torch.int64).reshape(1),)].squeeze(axis)
    return result


def _axis(items: tuple[Any, ...], place: int, rank: int, is_number: Callable[[Any], bool]) -> int:
    """Where the axis of an item is, as long as this number and those before it still have theirs."""
    before = items[:place]
    if Ellipsis not in [item for item in before if not isinstance(item, torch.Tensor)]:
        return sum(1 for item in before if _keeps_axis(item, is_number))
    after = [item for item in items[place:] if _keeps_axis(item, is_number) and not is_number(item)]
    return rank - len(after) - 1


def _keeps_axis(item: Any, is_number: Callable[[Any], bool]) -> bool:
    return item is None or isinstance(item, slice) or is_number(item)


def _is_plain(item: Any) -> bool:
    if isinstance(item, bool):
        return False
    return item is None or item is Ellipsis or isinstance(item, (int, SymInt, slice))
