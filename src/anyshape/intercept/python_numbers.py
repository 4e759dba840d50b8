"""Ints and floats that Python code reads from tensors, kept as tensors without axes that compute as Python numbers do.

    k = int(lengths.max())     ->     k is lengths.max() as an int64 tensor
    k // 2, k % 3, k < 0       ->     the same of that tensor, by Python's rules; `if k < 0` is a question of truth
    x * k                      ->     of x's dtype, as with an int
    x[:, k]                    ->     x[:, k.reshape(1)].squeeze(1): an error beyond either end
    x[:, :k], torch.zeros(k)   ->     here Python needs an int: a question of number (see `questions`)

Python's ints have no end. Where a result leaves 64 bits, or where Python would raise, the program raises too.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import SymFloat, SymInt
from torch.utils._pytree import tree_map

from anyshape.intercept.int_arithmetic import (
    COMPARISONS,
    ELEMENTWISE,
    OPERATIONS,
    as_double,
    computed,
    fitting,
    is_float,
    plain_call,
    raising_where,
)
from anyshape.intercept.patching import patched
from anyshape.intercept.real_numbers import (
    RealNumbers,
    dtype_beside,
    is_python_number,
    larger,
    leaves_of,
    smaller,
    tensors_of,
)
from anyshape.modules.user_code import runs_users_code

_INVERSES = {"add": operator.sub, "sub": operator.add}
_TWO_TO_63 = 2.0**63


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
    if not any(is_number(item) for item in items) or not all(is_plain_item(item) or is_number(item) for item in items):
        return None
    result = tensor[tuple(slice(None) if is_number(item) else item for item in items)]
    for place, item in reversed(list(enumerate(items))):
        if is_number(item):
            axis = axis_of_item(items, place, result.ndim, is_number)
            result = result[(slice(None),) * axis + (item.to(torch.int64).reshape(1),)].squeeze(axis)
    return result


def axis_of_item(items: tuple[Any, ...], place: int, rank: int, is_number: Callable[[Any], bool]) -> int:
    """Where the axis of an item is, as long as this number and those before it still have theirs."""
    before = items[:place]
    if Ellipsis not in [item for item in before if not isinstance(item, torch.Tensor)]:
        return sum(1 for item in before if _keeps_axis(item, is_number))
    after = [item for item in items[place:] if _keeps_axis(item, is_number) and not is_number(item)]
    return rank - len(after) - 1


def _keeps_axis(item: Any, is_number: Callable[[Any], bool]) -> bool:
    return item is None or isinstance(item, slice) or is_number(item)


def is_plain_item(item: Any) -> bool:
    """Whether an item of an index is an int, a slice, None or `...`."""
    if isinstance(item, bool):
        return False
    return item is None or item is Ellipsis or isinstance(item, (int, SymInt, slice))


Decide = Callable[[torch.Tensor], bool]


class PythonNumbers(RealNumbers):
    """The numbers that were read so far, and what was computed from them alone.

    `decide` decides a question of truth: the sign of an exponent decides whether a power is an int or a float.
    """

    def __init__(self, decide: Decide) -> None:
        super().__init__()
        self._decide = decide
        self._ints: dict[int, Any] = {}  # by id, the int or size that a number was decided as
        self._terms: dict[int, tuple[str, tuple[Any, ...]]] = {}  # by id, how a number was computed

    def add_whole(self, value: torch.Tensor) -> torch.Tensor:
        """A new int, of the value of a tensor with one element: truncated, as int() does it."""
        number = value.reshape(())
        if number.is_floating_point():
            double = number.to(torch.float64)
            number = raising_where(~(double.abs() < _TWO_TO_63), double)
        return self._register(number.to(torch.int64, copy=True))

    def is_whole(self, value: Any) -> bool:
        """Whether a value is one of the ints, or a bool computed from numbers."""
        return self.has(value) and not value.is_floating_point()

    def known_int(self, number: torch.Tensor) -> Any:
        """The int or size that this number is, where it or all that it was computed from was decided; else None."""
        if id(number) in self._ints:
            return self._ints[id(number)]
        name, operands = self._terms.get(id(number), ("", ()))
        if name not in OPERATIONS:
            return None
        values = [self.known_int(each) if isinstance(each, torch.Tensor) else each for each in operands]
        return None if any(value is None for value in values) else OPERATIONS[name](*values)

    def learn_int(self, number: torch.Tensor, decision: Any) -> None:
        """Note what a number was decided as, also for what it is a sum of: of `k - 3` follows `k`."""
        self._ints[id(number)] = decision
        name, operands = self._terms.get(id(number), ("", ()))
        if name in _INVERSES and isinstance(operands[0], torch.Tensor) and not isinstance(operands[1], torch.Tensor):
            self.learn_int(operands[0], _INVERSES[name](decision, operands[1]))

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        tensors = tensors_of((args, kwargs)) if self._numbers else []
        numbers = [tensor for tensor in tensors if self.has(tensor)]
        if not numbers or func in self.MAKERS or func in self.FILLS:
            return super().call(func, args, kwargs)
        if len(numbers) == len(tensors):
            return self._alone(func, args, kwargs)
        return super().call(func, args, kwargs)

    def _alone(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What is computed from numbers alone is a number; none is changed in place."""
        if func in (smaller, larger):
            return self._extreme(func, args)
        name, operands = plain_call(func, args)
        is_known = name in OPERATIONS or name in COMPARISONS
        if is_known and not kwargs and all(_is_number(each) for each in operands):
            result = self._register(computed(name, operands, self._decide))
            self._terms[id(result)] = (name, operands)
            return result
        if any(is_float(leaf) for leaf in leaves_of((args, kwargs))):
            args, kwargs = tree_map(lambda leaf: as_double(leaf) if self.has(leaf) else leaf, (args, dict(kwargs)))
        result = func(*args, **kwargs)
        is_number = isinstance(result, torch.Tensor) and result.ndim == 0
        return self._register(result) if is_number and result.dtype in (torch.float64, torch.int64) else result

    def _extreme(self, func: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        name = "min" if func is smaller else "max"
        result = values[0]
        for value in values[1:]:
            number = self._register(computed(name, (result, value), self._decide))
            self._terms[id(number)] = (name, (result, value))
            result = number
        return result

    def _dtype_beside(self, numbers: list[torch.Tensor], others: list[torch.Tensor]) -> torch.dtype:
        """An int leaves the dtype of whole numbers as it is; a bool becomes an int beside it."""
        is_whole = not any(number.is_floating_point() for number in numbers)
        if not is_whole or any(other.is_floating_point() or other.is_complex() for other in others):
            return dtype_beside(others)
        if all(number.dtype == torch.bool for number in numbers) and all(o.dtype == torch.bool for o in others):
            return torch.bool
        whole = [other.dtype for other in others if other.dtype != torch.bool]
        dtype = whole[0] if whole else torch.int64
        for other in whole[1:]:
            dtype = torch.promote_types(dtype, other)
        return dtype

    def _beside(
        self, dtype: torch.dtype, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if func.__name__ not in ELEMENTWISE or dtype.is_floating_point or dtype.is_complex:
            return super()._beside(dtype, func, args, kwargs)
        fit = lambda leaf: fitting(leaf, dtype) if self.has(leaf) else leaf  # noqa: E731
        args, kwargs = tree_map(fit, (args, dict(kwargs)))
        name, operands = plain_call(func, args)
        wrong = _wrong_operand(name, operands)
        if wrong is not None:
            args = tuple(raising_where(wrong, each) if each is operands[1] else each for each in args)
        return super()._beside(dtype, func, args, kwargs)


def _wrong_operand(name: str, operands: tuple[Any, ...]) -> torch.Tensor | None:
    """Whether a second operand without axes is one that PyTorch refuses beside whole numbers; None if all will do."""
    second = operands[1] if len(operands) == 2 else None
    if not isinstance(second, torch.Tensor) or second.ndim:
        return None
    if name in ("floordiv", "mod", "fmod"):
        return second == 0
    return second < 0 if name == "pow" else None


@contextmanager
def no_hash_of_numbers() -> Iterator[None]:
    """A number that is a tensor has no hash in the user's code: a dict or a set would look for the tensor itself."""

    def checked_hash(tensor: torch.Tensor) -> int:
        if is_python_number(tensor) and runs_users_code(sys._getframe(1)):
            raise RuntimeError("a number that was read from a tensor has no hash as long as it is a tensor")
        return id(tensor)

    with patched([(torch.Tensor, "__hash__", checked_hash)]):
        yield


def _is_number(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, int, float, SymInt, SymFloat))
