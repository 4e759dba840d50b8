"""Tensors whose length depends on values: what `nonzero` or a mask selects, and slices between ends that are tensors.

index = mask.nonzero()[:, 0]
    if index.numel() > 0: ...          a question of truth, as `if mask.any()` is one

In eager mode Python reads such a length as a plain int, so nothing shows that values decide. `Selections` follows these tensors
through the functions that keep their first axis, so that a read of that length can be recorded (see `questions`).

    x[:, :k]             ->    x[:, places < k], where places counts the elements of the axis
    x[row, k:] = value   ->    x[row][places >= k] = value
    x.split([j, k])      ->    x[places < j], x[(places >= j) & (places < j + k)]
    x.topk(k)            ->    the first of x sorted: values[places < k], indices[places < k]

In a loop each step has ends of its own. As masks they are part of the step, which the file repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import SymInt
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from anyshape.intercept.int_arithmetic import ELEMENTWISE, WHOLE_DTYPES, raising_where
from anyshape.intercept.python_numbers import axis_of_item, is_plain_item

_REPEATING = {"repeat_interleave"}
_SELECTING = _REPEATING | {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "unique_dim"}
_KEEPING = {"to", "float", "double", "half", "long", "int", "bool", "clone", "contiguous", "detach"} | ELEMENTWISE
_NEW_AXIS = {"squeeze", "unsqueeze"}


class Selections:
    """The tensors seen so far whose first axis has a length that values decide.

    `depends`: whether a tensor depends on the inputs. What a mask of the weights selects is no such tensor.
    """

    def __init__(self, depends: Callable[[Any], bool]) -> None:
        self._depends = depends
        self._tensors: dict[int, torch.Tensor] = {}  # kept, so that no other tensor gets the same id

    def note(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Remember the result of a function of the inputs' values, if it is a selection."""
        name = getattr(func, "__name__", "")
        if name in _REPEATING and (args[2] if len(args) > 2 else kwargs.get("dim")) not in (None, 0):
            return
        is_condition = name == "where" and len(args) == 1
        if (name in _SELECTING or is_condition) and self._depends(_deciding(name, args)):
            together = is_condition or name == "nonzero"  # one tensor for each axis, all of one length
            found = result if isinstance(result, tuple) and together else _first(result)
        elif name == "__getitem__":
            found = _first(result) if self._selects(*args) else ()
        else:
            found = _first(result) if self._keeps(name, args) else ()
        self._tensors |= {id(each): each for each in found if isinstance(each, torch.Tensor) and each.ndim}

    def added(self, tensors: Any) -> Any:
        """These tensors, whose first axes have lengths that values decide, remembered."""
        self._tensors |= {id(each): each for each in tensors}
        return tensors

    def read_size(self, func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, int | None] | None:
        """The sizes that a call reads of a selection, and the place of the one that values decide.

        The place is None where the call reads that size alone. None if no such size is read.
        """
        if not args or not self._has(args[0]):
            return None
        tensor = args[0]
        if func is torch.Tensor.numel:
            return tensor.numel(), None
        if getattr(func, "__self__", None) is torch.Tensor.shape or (func is torch.Tensor.size and len(args) == 1):
            return tuple(tensor.shape), 0
        is_first = func is torch.Tensor.size and args[1] in (0, -tensor.ndim)
        return (tensor.shape[0], None) if is_first else None

    def _selects(self, tensor: torch.Tensor, index: Any) -> bool:
        """Whether `tensor[index]` has a first axis whose length values decide."""
        first = index[0] if isinstance(index, tuple) and index else index
        if isinstance(first, torch.Tensor):
            is_mask = first.dtype in (torch.bool, torch.uint8) and first.ndim > 0
            return self._has(first) or (is_mask and self._depends(first))
        return self._has(tensor) and isinstance(first, slice)

    def _keeps(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether a function leaves the first axis of a selection, its first operand, as it is."""
        if not args or not self._has(args[0]):
            return False
        if name in _NEW_AXIS:
            return len(args) == 2 and isinstance(args[1], int) and args[1] not in (0, -args[0].ndim, -args[0].ndim - 1)
        return name in _KEEPING

    def _has(self, value: Any) -> bool:
        return id(value) in self._tensors


def _deciding(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operand whose values decide how much a function selects."""
    return args[1:2] if name in {"masked_select", *_REPEATING} else args[:1]


def _first(result: Any) -> tuple[Any, ...]:
    return result[:1] if isinstance(result, tuple) else (result,)


def is_open_size(size: Any) -> bool:
    """Whether a size of a trace depends on values."""
    return isinstance(size, SymInt) and bool(free_unbacked_symbols(size))


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
    mask = _mask(whole, axis, items[place])
    selected: tuple[Any, ...] = (*(slice(None) for _ in range(axis)), mask)
    if not value:
        return whole[selected]
    given = value[0]
    rows = axis - whole.ndim
    if isinstance(given, torch.Tensor) and given.ndim >= -rows and is_open_size(given.shape[rows]):
        _write_rows(whole, mask, given, rows)
    else:
        whole[selected] = given
    return None


def _write_rows(whole: torch.Tensor, mask: torch.Tensor, given: torch.Tensor, axis: int) -> None:
    """whole[mask] = given, along an axis counted from the back, where values decide how many rows are given.

    torch compares that number with how many places the mask has. Here each place of the mask picks its row.
    """
    number = torch.full((), given.shape[axis], dtype=torch.int64)
    is_one = number == 1
    number = raising_where(~is_one & (number != mask.sum()), number)
    rows = torch.where(is_one, torch.zeros_like(number), mask.to(torch.int64).cumsum(0) - 1)
    spare = list(given.shape)
    spare[axis] = 1
    table = torch.cat([given, given.new_zeros(spare)], given.ndim + axis)
    chosen = table.index_select(given.ndim + axis, torch.where(mask, rows, number)).to(whole.dtype)
    whole.copy_(torch.where(mask.reshape((-1,) + (1,) * (-axis - 1)), chosen, whole))


def split_with_masks(x: torch.Tensor, lengths: Sequence[Any], dim: int) -> tuple[torch.Tensor, ...]:
    """`x.split(lengths, dim)`, where lengths are tensors without axes."""
    size = x.shape[dim]
    numbers = torch.stack([torch.as_tensor(each, dtype=torch.int64) for each in lengths])
    numbers = raising_where((numbers < 0).any() | (numbers.sum() != size), numbers)
    ends = numbers.cumsum(0)
    before: tuple[Any, ...] = (slice(None),) * (dim % x.ndim)
    pieces = []
    for start, end in zip((ends - numbers).unbind(), ends.unbind(), strict=True):
        places = torch.arange(size, device=x.device)
        pieces.append(x[(*before, (places >= start) & (places < end))])
    return tuple(pieces)


def topk_with_mask(x: torch.Tensor, number: torch.Tensor, *, largest: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """`x.topk(number)` of a tensor with one axis, whose number is a tensor without axes. Raises where x has not as many."""
    values, indices = x.sort(descending=largest, stable=True)
    number = raising_where((number < 0) | (number > torch.full((), x.shape[0], dtype=torch.int64)), number)
    mask = torch.arange(x.shape[0], device=x.device) < number
    chosen: tuple[torch.Tensor, torch.Tensor] = torch.return_types.topk((values[mask], indices[mask]))  # type: ignore[attr-defined]
    return chosen


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
