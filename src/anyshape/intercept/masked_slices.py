"""Slices between ends that are tensors, as masks: no size of a slice is a Python number.

    x[:, :k]             ->    x[:, places < k], where places counts the elements of the axis
    x[row, k:] = value   ->    x[row][places >= k] = value

In a loop each step has ends of its own. As masks they are part of the step, which the file repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from anyshape.intercept.int_arithmetic import WHOLE_DTYPES
from anyshape.intercept.python_numbers import axis_of_item, is_plain_item

IsOpen = Callable[[Any], bool]


def find_open_slice(index: Any, is_open: IsOpen) -> int | None:
    """The place of the one slice of an index that has open ends.

    None if there is none, if there are several, or if other things than slices and ints stand beside it.
    """
    items = _items(index)
    places = [place for place, item in enumerate(items) if isinstance(item, slice) and _has_open_ends(item, is_open)]
    if len(places) != 1 or not all(map(is_plain_item, items)):
        return None
    return places[0] if items[places[0]].step in (None, 1) else None


def call_with_mask(place: int, tensor: torch.Tensor, index: Any, *value: Any) -> Any:
    """`tensor[index]`, or `tensor[index] = value`, with a mask for the slice at this place."""
    items, everything = _items(index), slice(None)
    whole_items = (*items[:place], everything, *items[place + 1 :])
    whole = tensor[whole_items]
    axis = axis_of_item(whole_items, place, whole.ndim, lambda item: item is everything)
    selected: tuple[Any, ...] = (*(slice(None) for _ in range(axis)), _mask(whole, axis, items[place]))
    if not value:
        return whole[selected]
    whole[selected] = value[0]
    return None


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _has_open_ends(item: slice, is_open: IsOpen) -> bool:
    ends = [end for end in (item.start, item.stop) if is_open(end)]
    return bool(ends) and all(end.dtype in WHOLE_DTYPES for end in ends)


def _mask(whole: torch.Tensor, axis: int, ends: slice) -> torch.Tensor:
    size = whole.shape[axis]
    places = torch.arange(size, device=whole.device)
    mask = torch.ones_like(places, dtype=torch.bool)
    if ends.start is not None:
        mask = mask & (places >= _from_the_front(ends.start, size))
    if ends.stop is not None:
        mask = mask & (places < _from_the_front(ends.stop, size))
    return mask


def _from_the_front(end: Any, size: Any) -> Any:
    """An end that counts from the back where it is below 0, counted from the front."""
    if not isinstance(end, torch.Tensor):
        return end if end >= 0 else end + size
    end = end.reshape(()).to(torch.int64)
    return torch.where(end < 0, end + size, end)
