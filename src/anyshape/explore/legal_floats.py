"""Which floating-point values the module takes: bounds, learned where it raises for values and not for sizes.

    if (x > 2.5).any(): raise ...        x <= 2.5

At some of the refused sizes all elements of an input get one number, and the largest and the smallest number that the module
takes are searched by bisection. They are bounds if they are the same at all of these sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, inf

import torch

from anyshape.domain import Sizes
from anyshape.domain.bounded_values import name_in_bounds
from anyshape.explore.legal_values import LegalValues
from anyshape.findings import DeclarationError
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.making import BoundedMaker, declare_values

Answers = Callable[[Inputs], bool]

_CALMER = (0.3, 0.1, 0.03, 0.01, 0.0)
_FARTHEST = 1e4
_MOST_POINTS = 3
_HALVINGS = 60
_SEEDS = (0, 1, 2)
_EXACT = 1e-6


@dataclass(frozen=True)
class _Calm:
    """Sizes at which the module refused, and inputs nearer to zero which it takes there."""

    sizes: Sizes
    inputs: Inputs


def find_calm(declared: Declared, answers: Answers, refused: Sequence[Sizes]) -> list[_Calm]:
    """Some of the refused sizes at which the module answers to the same values scaled down: no size is at fault there."""
    leaves = _float_leaves(declared)
    found = []
    for sizes in refused[:_MOST_POINTS] if leaves else ():
        made = declared.make(sizes, 0)
        calmer = (_changed(declared, made, leaves, partial(torch.mul, other=scale)) for scale in _CALMER)
        inputs = next(filter(answers, calmer), None)
        if inputs is not None:
            found.append(_Calm(sizes, inputs))
    return found


def learn_floats(declared: Declared, answers: Answers, calm: Sequence[_Calm]) -> LegalValues | None:
    """Bounds of the floating-point inputs; None where one number in all elements shows none."""
    if declared.only_given_values or not calm:
        return None
    found = {leaf: bounds for leaf in _float_leaves(declared) if (bounds := _bounds(declared, answers, calm, leaf))}
    if not found:
        return None
    ranges = {leaf.name: bounds for leaf, bounds in found.items()}
    texts = {leaf.name: _text(leaf, *bounds) for leaf, bounds in found.items()}
    drawn = replace(declared, make=BoundedMaker(declared, lambda _: ranges))
    if not all(answers(drawn.make(each.sizes, seed)) for each in calm for seed in _SEEDS):
        return None
    try:
        return LegalValues(declare_values(drawn, {**declared.value_texts, **texts}), texts, "")
    except DeclarationError:  # the example is not within: the bounds are not what they seem
        return None


def _bounds(declared: Declared, answers: Answers, calm: Sequence[_Calm], leaf: InputLeaf) -> tuple[float, float] | None:
    """The smallest and the largest number that this input may have; None where it has no end, or not one for all sizes."""
    ends = []
    for far in (-_FARTHEST, _FARTHEST):
        seen = [_end(declared, answers, each, leaf, far) for each in calm]
        if None in seen or len(set(seen)) > 1:
            return None
        ends.append(seen[0])
    low, high = ends
    if low is None or high is None or (low == -inf and high == inf):
        return None
    return low, high


def _end(declared: Declared, answers: Answers, calm: _Calm, leaf: InputLeaf, far: float) -> float | None:
    """The farthest number towards this end that the module takes, infinite where it takes all; None if it takes none."""

    def takes(number: float) -> bool:
        return answers(_changed(declared, calm.inputs, [leaf], lambda value: torch.full_like(value, number)))

    if takes(far):
        return inf if far > 0 else -inf
    near = next((number for number in (0.0, 0.5, 0.01) if takes(number)), None)
    if near is None:
        return None
    outside = far
    for _ in range(_HALVINGS):
        middle = (near + outside) / 2
        near, outside = (middle, outside) if takes(middle) else (near, middle)
    inside = (floor(near / _EXACT) if far > 0 else ceil(near / _EXACT)) * _EXACT
    return next((number for number in _short(near) if abs(number - near) < _EXACT and takes(number)), inside)


def _short(number: float) -> Iterator[float]:
    """The number with more and more decimals, rounded towards zero and away from it."""
    for decimals in range(6):
        scale = 10.0**decimals
        yield floor(number * scale) / scale
        yield (floor(number * scale) + 1) / scale


def _changed(
    declared: Declared, inputs: Inputs, leaves: Sequence[InputLeaf], change: Callable[[torch.Tensor], torch.Tensor]
) -> Inputs:
    flat = zip(declared.leaves, declared.flat(inputs), strict=True)
    return declared.rebuild([change(value) if leaf in leaves else value for leaf, value in flat])


def _float_leaves(declared: Declared) -> list[InputLeaf]:
    return [
        leaf
        for leaf in declared.tensor_leaves
        if leaf.dtype.startswith(("float", "bfloat")) and leaf.name not in declared.value_texts
    ]


def _text(leaf: InputLeaf, low: float, high: float) -> str:
    name = name_in_bounds(leaf.name)
    if low == -inf:
        return f"{name} <= {high:g}"
    return f"{low:g} <= {name}" if high == inf else f"{low:g} <= {name} <= {high:g}"
