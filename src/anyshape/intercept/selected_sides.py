"""A module that runs both sides of branches on values, and selects by the value what they set.

    if row.sum() > 0: total = total + row       ->     total = torch.where(row.sum() > 0, total + row, total * 0.5)
    else: total = total * 0.5

So a branch in a loop decides nothing, and the loop can be rolled up. NaN and infinity of the side that is not selected do not
reach the result. Sides that set a variable to tensors of different shapes or dtypes are an error: such a module is captured by
its decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import torch

from anyshape.intercept.call_sites import SameCode
from anyshape.intercept.fixed_decisions import FixedDecisions
from anyshape.intercept.joined_branches import rewritten
from anyshape.intercept.side_syntax import ANY, EVERY, IS_TENSOR, NOT, SELECTED, WRITTEN, select_sides
from anyshape.modules.user_code import functions_beside, user_functions

_NUMBERS = (int, float)


class NotSelected(RuntimeError):
    """Two sides of a branch that leave things of different kinds."""


class SelectedSides(FixedDecisions):
    """The module without decisions: what its branches set is selected. Any other question is an error."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module, ())

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with _selecting(functions_beside(self.module)):
            return super()._run(args, kwargs)


def has_sides_to_select(module: torch.nn.Module) -> bool:
    """Whether the source of the module has branches in loops of which both sides may run."""
    return any(_selected_code(SameCode(function.__code__)) is not None for function in user_functions(module))


@contextmanager
def _selecting(functions: Iterable[FunctionType]) -> Iterator[None]:
    before: list[tuple[FunctionType, CodeType]] = []
    try:
        for function in functions:
            code = _selected_code(SameCode(function.__code__))
            if code is not None:
                before.append((function, function.__code__))
                function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code


@lru_cache(maxsize=4096)
def _selected_code(of: SameCode) -> CodeType | None:
    return rewritten(of.code, select_sides, _HELPERS)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _selected(test: torch.Tensor, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """What one side left where the test is true, else what the other left; of a variable that only one has set, that."""
    left = []
    for side in (one, other):
        try:
            left.append(side())
        except NameError:  # what reads it later would raise, too, where this side runs
            continue
    return _select(test, *left) if len(left) == 2 else left[0]


def _written(tensor: Any, value: Any) -> Any:
    """`x += y` of a tensor writes into it, under all names that it has."""
    return tensor.copy_(value) if isinstance(tensor, torch.Tensor) and tensor is not value else value


def _select(test: torch.Tensor, one: Any, other: Any) -> Any:
    if one is other:
        return one
    if isinstance(one, (tuple, list)) and type(one) is type(other) and len(one) == len(other):
        return type(one)(_select(test, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        if type(one) is type(other) and one == other:
            return one
        dtype = _dtype(one, other)
        one, other = torch.tensor(one, dtype=dtype), torch.tensor(other, dtype=dtype)
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        raise NotSelected(f"one side of a branch leaves {type(one).__name__}, the other {type(other).__name__}")
    if one.dtype != other.dtype or one.ndim != other.ndim or one.shape != other.shape:
        raise NotSelected("the sides of a branch leave tensors of different shapes or dtypes")
    return torch.where(test.reshape(()) != 0, one, other)


def _dtype(one: float, other: float) -> torch.dtype:
    kinds = {type(one), type(other)}
    return torch.bool if kinds == {bool} else torch.float64 if float in kinds else torch.int64


def _every(*operands: Callable[[], Any]) -> Any:
    return _joined(operands, is_every=True)


def _any_of(*operands: Callable[[], Any]) -> Any:
    return _joined(operands, is_every=False)


def _joined(operands: tuple[Callable[[], Any], ...], *, is_every: bool) -> Any:
    """`a and b`, or `a or b`: of tensors a tensor, of which each operand is computed."""
    value: Any = None
    for operand in operands:
        one = operand()
        if _is_tensor(value):
            truth = one != 0 if _is_tensor(one) else torch.tensor(bool(one))
            combine = torch.logical_and if is_every else torch.logical_or
            value = combine(value.reshape(()) != 0, truth.reshape(()))
            continue
        value = one
        if not _is_tensor(value) and bool(value) != is_every:
            return value
    return value


def _not_of(value: Any) -> Any:
    return value.reshape(()) == 0 if _is_tensor(value) else not value


_HELPERS: dict[str, Callable[..., Any]] = {
    SELECTED: _selected,
    IS_TENSOR: _is_tensor,
    EVERY: _every,
    ANY: _any_of,
    NOT: _not_of,
    WRITTEN: _written,
}
