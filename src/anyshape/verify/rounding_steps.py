"""Numbers that are rounded, cast to integers or compared although rounding decides on which side they are.

    (y * 255).round().to(torch.uint8)     180.49998 in the module, 180.50001 in the file   ->   180 and 181

The module runs again with the arguments of such operators a little larger, then a little smaller. An element of the outputs
that changes is as sensitive as that. Numbers that lie on a step exactly stay there, unless more precise arithmetic moves them:
`floor(n / 7)` of integers has one right answer, and so has rounding half to even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.verify.choices import base_name
from anyshape.verify.reference import Answer, CallInputs, Reference
from anyshape.verify.steps_of_sizes import Step, kept_steps
from anyshape.verify.ties import ROUNDINGS_APART
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
    own, exact = _Watching(), _Watching()
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
        with _Moving(direction, moved if len(own.steps) == len(exact.steps) else ()), kept_steps(of_sizes, inputs):
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
    def __init__(self) -> None:
        super().__init__()
        self.steps: Steps = []

    def at_step(self, number: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        self.steps.append(distance.detach().clone())
        return number


class _Moving(_AtSteps):
    def __init__(self, direction: int, moved: Sequence[torch.Tensor | None]) -> None:
        super().__init__()
        self._direction = direction
        self._moved = iter(moved)

    def at_step(self, number: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
        moved = next(self._moved, None)
        on_step = distance * 2 == (distance * 2).round()
        finite = number.detach().nan_to_num(0.0, 0.0, 0.0).abs()
        reach = least_noise(torch.finfo(number.dtype).eps) * float(finite.max())
        if moved is not None and moved.shape == distance.shape:
            on_step = on_step & (moved == 0)
            reach = max(reach, ROUNDINGS_APART * float(moved.nan_to_num(0.0, 0.0, 0.0).max()))
        shifted = number + self._direction * reach
        if on_step.shape != number.shape:  # compared with a larger tensor
            return number if bool(on_step.any()) else shifted
        return torch.where(on_step, number, shifted)
