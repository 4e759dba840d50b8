"""Numbers that are rounded, cast to integers or compared although rounding decides on which side they are.

    (y * 255).round().to(torch.uint8)     180.49998 in the module, 180.50001 in the file   ->   180 and 181

The module runs again with the arguments of such operators a little larger, then a little smaller. An element of the outputs
that changes is as sensitive as that. Numbers that lie on a step exactly stay there, unless more precise arithmetic moves them:
`floor(n / 7)` of integers has one right answer, and so has rounding half to even.

A tie is no exact one where it comes from an operator that rounds on its way to its result, such as a sum of products: that the
sum is 124.5 in single and in double precision is chance (3/7 of a byte and 4/7 of another), and the same picture mirrored may
give 124.49999. Such an operator gives other numbers somewhere in its result when it computes in double precision and rounds
once, which shows how far it rounds: also where the module asks for single precision (`x.to(torch.float32)`), and more precise
arithmetic for all of it cannot be had. A sum, product or quotient of two numbers never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.verify.choices import base_name
from anyshape.verify.reference import Answer, CallInputs, Reference
from anyshape.verify.steps_of_sizes import Step, kept_steps
from anyshape.verify.ties import MOST_APART, ROUNDINGS_APART
from anyshape.verify.tolerance import least_noise

_ROUND = frozenset({"round", "floor", "ceil", "trunc", "sign", "_to_copy"})
_COMPARE = frozenset({"gt", "ge", "lt", "le"})

Steps = list[torch.Tensor]
"""The distance of each argument from 0 or from what it is compared with, in the order of the calls."""


def answers_beside_steps(
    reference: Reference, inputs: CallInputs, other: Callable[[CallInputs], object], of_sizes: Sequence[Step] = ()
) -> Iterator[Answer]:
    """The module's answers with rounded numbers moved up, then down; none where it rounds and compares nothing.

    `other` runs the module in more precise arithmetic, or in another order of summation. Steps `of_sizes` stay as they are.
    """
    own, exact = _Watching(finds_rounded=True), _Watching()
    with own:
        reference.run(inputs, watched=True)
    if not own.steps:
        return
    with exact:
        other(inputs)
    moved = [
        (one.double() - two.double()).abs() if one.shape == two.shape else None
        for one, two in zip(own.steps, exact.steps, strict=False)
    ]
    for direction in (1, -1):
        # The steps of sizes are replaced last, so that they do not see what moves the others.
        given = moved if len(own.steps) == len(exact.steps) else ()
        with _Moving(direction, given, own.roundings), kept_steps(of_sizes, inputs):
            answer = reference.run(inputs, watched=True)
        if isinstance(answer, Answer):
            yield answer


class _AtSteps(TorchDispatchMode):  # type: ignore[misc]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        name = base_name(func)
        first = args[0] if args else None
        if not isinstance(first, torch.Tensor) or not first.is_floating_point() or not first.numel():
            return func(*args, **given)
        if name in _ROUND and (name != "_to_copy" or _is_integer(given.get("dtype"))):
            return func(self.at_step(first, first), *args[1:], **given)
        if name in _COMPARE:
            return func(self.at_step(first, first - args[1]), *args[1:], **given)
        return func(*args, **given)

    def at_step(self, number: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        """What the operator gets in place of `number`; its step, or one of them, is where `distance` is 0."""
        raise NotImplementedError


def _is_integer(dtype: Any) -> bool:
    return isinstance(dtype, torch.dtype) and not dtype.is_floating_point and not dtype.is_complex


class _Watching(_AtSteps):
    """Collects the steps, and with `finds_rounded` the roundings of operators that the argument of each follows from.

    A rounding is relative to the largest number of a result; 0 where all operators round once.
    """

    def __init__(self, *, finds_rounded: bool = False) -> None:
        super().__init__()
        self.steps: Steps = []
        self.roundings: list[float] = []
        self._finds_rounded = finds_rounded
        self._rounded = WeakIdKeyDictionary()  # tensor -> the largest rounding on the way to it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self._finds_rounded:
            tensors = [each for each in tree_leaves((args, kwargs)) if _is_tensor(each)]
            before = max((self._rounded.get(each, 0.0) for each in tensors), default=0.0)
            if rounding := max(before, _rounding_of(func, args, kwargs or {}, result)):
                self._rounded.update((each, rounding) for each in tree_leaves(result) if _is_tensor(each))
        return result

    def at_step(self, number: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        self.steps.append(distance.detach().clone())
        self.roundings.append(self._rounded.get(number, 0.0))
        return number


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_narrow(value: Any) -> bool:
    return _is_tensor(value) and value.is_floating_point() and value.dtype != torch.float64


def _rounding_of(func: Any, args: Any, kwargs: Any, result: Any) -> float:
    """How far an operator's numbers are from those that it computes in double precision and rounds once."""
    takes = any(map(_is_narrow, tree_leaves((args, kwargs))))
    if not takes or func._schema.is_mutable or torch.Tag.nondeterministic_seeded in func.tags:
        return 0.0
    with suppress(Exception):  # it cannot be run in double precision
        exact = func(*tree_map_only(torch.Tensor, _widened, args), **tree_map_only(torch.Tensor, _widened, kwargs))
        pairs = zip(tree_leaves(result), tree_leaves(exact), strict=True)
        return max((_apart(one, two) for one, two in pairs if _is_narrow(one) and one.numel()), default=0.0)
    return 0.0


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    number, exact = (each.double().nan_to_num(0.0, 0.0, 0.0) for each in (one, other.to(one.dtype)))
    apart = float((number - exact).abs().max()) / (float(exact.abs().max()) or 1.0)
    return apart if apart <= torch.finfo(one.dtype).eps * MOST_APART else 0.0  # else it took another way


def _widened(value: torch.Tensor) -> torch.Tensor:
    return value.double() if _is_narrow(value) else value


class _Moving(_AtSteps):
    def __init__(self, direction: int, moved: Sequence[torch.Tensor | None], roundings: Sequence[float]) -> None:
        super().__init__()
        self._direction = direction
        self._moved = iter(moved)
        self._roundings = iter(roundings)

    def at_step(self, number: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        moved, rounding = next(self._moved, None), next(self._roundings, 0.0)
        on_step = distance * 2 == (distance * 2).round()
        if rounding:
            on_step = on_step & (distance == distance.round())
        finite = number.detach().nan_to_num(0.0, 0.0, 0.0).abs()
        noise = max(least_noise(torch.finfo(number.dtype).eps), ROUNDINGS_APART * rounding)
        reach = noise * float(finite.max())
        if moved is not None and moved.shape == distance.shape:
            on_step = on_step & (moved == 0)
            reach = max(reach, ROUNDINGS_APART * float(moved.nan_to_num(0.0, 0.0, 0.0).max()))
        shifted = number + self._direction * reach
        if on_step.shape != number.shape:  # compared with a larger tensor
            return number if bool(on_step.any()) else shifted
        return torch.where(on_step, number, shifted)
