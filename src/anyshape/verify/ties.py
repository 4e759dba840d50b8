"""Choices among equal values: where torch leaves their order open, an index that differs only there is as good as the module's.

The module runs once more, and every operator that picks positions by value is looked at. An output that is such an
operator's indices may name another position of the same value; a position of another value is wrong, and so is one that is
named twice where each may come but once. `argmax` and its like take the first of equal values, as torch documents; another one
is right only where the values were computed, so that rounding may have made them unequal in the file. Computed values count as
equal when they are no further apart than rounding moves them: the module in double precision shows how far that is.

`topk`, `sort` without `stable`, `kthvalue`, `median`, `mode` and torchvision's `nms` choose among equal values as their kernel
happens to. The module runs again with the first, and with the last, of the equal ones; a file that agrees with one of these
runs is right. `argmax` and `max` along an axis are not among them: torch documents that they take the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.runtime.child_messages import Array
from anyshape.verify.choices import Choice, Watched, base_name
from anyshape.verify.compare import epsilon, is_float, widen
from anyshape.verify.reference import Answer, CallInputs, Reference
from anyshape.verify.tolerance import least_noise

ROUNDINGS_APART = 4
"""Two values in the module and the same two in the file are four that rounding has moved."""
MOST_APART = 256
"""In epsilons of the largest value: two runs that are further apart took different ways, which is no rounding."""
_ONE_OF_EQUALS = {"kthvalue", "median", "nanmedian", "mode"}


@dataclass(frozen=True, eq=False)
class Choices:
    """Per output: infinity where another position is as good and 0 elsewhere, and where the very position is documented."""

    free: tuple[Array, ...]
    fixed: tuple[Array, ...]
    has_fixed_ties: bool
    """Whether one of equal values was chosen, and which is documented: then equal values must stay equal in a second run."""
    ordered: tuple[Choice, ...]
    """What `topk` and `sort` have put in order, in the order of the calls."""


def look_at_choices(
    watched: Watched, expected: Sequence[Array], actual: Sequence[Array], exact: Sequence[Choice] = ()
) -> Choices:
    """Which elements of the outputs are positions that the module chose by value, and how freely.

    `exact` are the same choices in double precision, where they are known.
    """
    numbered = list(enumerate(watched.choices))
    fixed = [choice for place, choice in numbered if choice.takes_first and watched.is_exact(place)]
    free = [(place, choice) for place, choice in numbered if choice not in fixed]
    if len(exact) == len(watched.choices):
        free = [(place, _with_rounding(choice, exact[place])) for place, choice in free]
    return Choices(
        tuple(
            _free_places([each for _, each in free], one, other) for one, other in zip(expected, actual, strict=True)
        ),
        tuple(_fixed_places(fixed, one) for one in expected),
        any(map(_has_ties, fixed)),
        tuple(choice if watched.is_exact(place) else _with_least(choice) for place, choice in free if choice.each_once),
    )


def _with_rounding(choice: Choice, exact: Choice) -> Choice:
    if not is_float(choice.values) or choice.values.shape != exact.values.shape or choice.values.size == 0:
        return choice
    with np.errstate(invalid="ignore"):
        moved = np.abs(widen(choice.values) - widen(exact.values))
    return replace(choice, rounding=np.where(np.isfinite(moved), moved, 0.0).max(choice.axis, keepdims=True))


def _with_least(choice: Choice) -> Choice:
    """The choice, for computed values: its rounding is at least the least that is assumed of such values."""
    largest = np.max(
        np.abs(widen(choice.values)), choice.axis, keepdims=True, initial=0.0, where=np.isfinite(choice.values)
    )
    least = least_noise(epsilon(choice.values)) * largest / ROUNDINGS_APART
    return replace(choice, rounding=np.maximum(choice.rounding, least))


def _fixed_places(choices: Sequence[Choice], expected: Array) -> Array:
    is_chosen = any(choice.is_given_as(expected) for choice in choices)
    return np.full(expected.shape, is_chosen)


def _has_ties(choice: Choice) -> bool:
    wanted = _picked(choice, choice.indices)
    wide = wanted if wanted.ndim == choice.values.ndim else np.expand_dims(wanted, choice.axis)
    return bool(((choice.values == wide).sum(choice.axis) > 1).any())


def _free_places(choices: Sequence[Choice], expected: Array, actual: Array) -> Array:
    nowhere = np.zeros(expected.shape)
    if expected.dtype.kind not in "iu" or expected.shape != actual.shape:
        return nowhere
    for choice in choices:
        if choice.is_given_as(expected):
            free = _ties(choice, actual.reshape(choice.indices.shape))
            return np.where(free, np.inf, 0.0).reshape(expected.shape)
    return nowhere


def _ties(choice: Choice, actual: Array) -> Array:
    """Which of these positions hold the same value as the module's."""
    length = choice.values.shape[choice.axis]
    is_there = (actual >= 0) & (actual < length)
    picked = _picked(choice, np.where(is_there, actual, 0))
    wanted = _picked(choice, choice.indices)
    same = picked == wanted
    if is_float(choice.values):
        one, other = widen(picked), widen(wanted)
        with np.errstate(invalid="ignore"):
            noise = least_noise(epsilon(choice.values)) * np.maximum(np.abs(one), np.abs(other))
            near = np.abs(one - other) <= np.maximum(noise, ROUNDINGS_APART * _rounding(choice))
        same = same | near | (np.isnan(one) & np.isnan(other))
    if choice.each_once and not _is_each_once(actual, choice.axis):
        return np.zeros(actual.shape, bool)
    return np.asarray(same & is_there)


def _picked(choice: Choice, indices: Array) -> Array:
    places = indices if indices.ndim == choice.values.ndim else np.expand_dims(indices, choice.axis)
    return np.take_along_axis(choice.values, places.astype(np.int64), choice.axis).reshape(indices.shape)


def _rounding(choice: Choice) -> Array:
    """In a form that broadcasts with the indices."""
    if choice.indices.ndim == choice.values.ndim or np.ndim(choice.rounding) == 0:
        return np.asarray(choice.rounding)
    return np.squeeze(np.asarray(choice.rounding), choice.axis)


def _is_each_once(indices: Array, axis: int) -> bool:
    ordered = np.sort(indices, axis)
    return bool((np.diff(ordered, axis=axis) != 0).all())


def other_orders(reference: Reference, inputs: CallInputs) -> Iterator[Answer]:
    """The module's answers with the first, then with the last of equal values; none where it chooses nothing."""
    for takes_last in (False, True):
        order = _Order(takes_last)
        with order:
            answer = reference.run(inputs, watched=True)
        if not order.is_used:
            return
        if isinstance(answer, Answer):
            yield answer


class _Order(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, takes_last: bool) -> None:
        super().__init__()
        self._takes_last = takes_last
        self.is_used = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = base_name(func)
        named = {each.name: value for each, value in zip(func._schema.arguments, args, strict=False)} | given
        if name == "topk":
            return self._top(named)
        if name == "sort" and not named.get("stable"):
            return self._sorted(named["self"], named.get("dim", -1), bool(named.get("descending", False)))
        if name in _ONE_OF_EQUALS and isinstance(result, tuple):
            return self._one_of_equals(named["self"], named.get("dim", -1), bool(named.get("keepdim", False)), result)
        if func.name() == "torchvision::nms":
            return self._suppressed(func, *args)
        return result

    def _sorted(self, x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
        self.is_used = True
        if not self._takes_last or x.dim() == 0:
            values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
            return values, indices
        values, indices = torch.sort(x.flip(dim), dim=dim, descending=descending, stable=True)
        return values, x.shape[dim] - 1 - indices

    def _top(self, named: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        x, dim = named["self"], named.get("dim", -1)
        values, indices = self._sorted(x, dim, bool(named.get("largest", True)))
        if x.dim() == 0:
            return values, indices
        return values.narrow(dim, 0, named["k"]), indices.narrow(dim, 0, named["k"])

    def _one_of_equals(
        self, x: torch.Tensor, dim: int, keepdim: bool, result: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.is_used = True
        values, indices = result[0], result[1]
        if x.dim() == 0:
            return values, indices
        wide = values if keepdim else values.unsqueeze(dim)
        equal = ((x == wide) | (x.isnan() & wide.isnan())).to(torch.int8)
        first = equal.argmax(dim, keepdim=keepdim)
        return values, x.shape[dim] - 1 - equal.flip(dim).argmax(dim, keepdim=keepdim) if self._takes_last else first

    def _suppressed(self, func: Any, boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> Any:
        self.is_used = True
        if not self._takes_last:
            return func(boxes, scores, threshold)
        return boxes.shape[0] - 1 - func(boxes.flip(0), scores.flip(0), threshold)
