"""Edge values of the inputs: values that random numbers hardly ever meet, and that distinguish a wrong file from a right one.

A draw of random numbers rarely meets a branch such as `if x.sum() == 0`, a sign of zero, a padded row. The first edges change
all inputs at once. The further ones change some elements, one input of several, or the pattern of a mask.
What the module refuses is set aside and counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

import numpy as np
import torch

from anyshape.runtime.child_messages import Array
from anyshape.verify.compare import is_float, widen
from anyshape.verify.patterns import (
    FURTHER_CHANGES,
    Change,
    Draw,
    few_numbers,
    floats,
    is_mask,
    is_number,
    is_wide_float,
    whole_range,
    with_much_nan,
    with_nan,
)
from anyshape.verify.reference import Answer, CallInputs
from anyshape.verify.tensors import map_tensors

RANDOM = "random"
_IN = " in "
_HALF_RANGE = 1e5
_FINE = 1e-4
_MOST_INPUTS = 6  # of which each gets edge values of its own
Inputs = TypeVar("Inputs", bound=CallInputs)
Note = Callable[[torch.Tensor, torch.Tensor], None]
_ALONE = ("zeros", "negated", "mixed", "prefix-masks", "negative-integers")
"""Of both: tried in one input at a time as well."""


@dataclass(frozen=True)
class Legal:
    """Which tensor of the inputs has which name, and the lowest and highest legal value of each, as far as declared."""

    positions: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def range_at(self, position: int) -> tuple[float, float] | None:
        names = (name for name, at in self.positions.items() if at == position)
        return next((self.ranges[name] for name in names if name in self.ranges), None)


def lowest_integers(draws: Iterable[Inputs]) -> dict[int, int]:
    """Number of each tensor of integers -> the lowest of them in all draws, if they are not all equal.

    Equal ones are an example of one number, which is no evidence for others.
    """
    seen: dict[int, set[int]] = {}
    for inputs in draws:
        numbers = count()

        def note(tensor: torch.Tensor, numbers: Iterator[int] = numbers) -> torch.Tensor:
            position = next(numbers)
            if is_number(tensor):
                seen.setdefault(position, set()).update((int(tensor.min()), int(tensor.max())))
            return tensor

        map_tensors(inputs, note)
    return {position: min(values) for position, values in seen.items() if len(values) > 1}


def positions_of(inputs: Inputs, named: Callable[[Inputs], Mapping[str, Array]]) -> dict[str, int]:
    """Name of each input -> number of its tensor in the order of `map_tensors`, found by changing one tensor at a time."""
    before = named(inputs)
    total, positions = 0, dict[str, int]()

    def count_one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += 1
        return tensor

    map_tensors(inputs, count_one)
    for position in range(total):
        after = named(_mapped_one(inputs, position))
        names = [name for name in before if name not in positions and _differ(before[name], after[name])]
        positions.update(dict.fromkeys(names[:1], position))
    return positions


def _mapped_one(inputs: Inputs, position: int) -> Inputs:
    number = -1

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal number
        number += 1
        if number != position:
            return tensor
        return torch.ones_like(tensor) if bool((tensor != 1).any()) else torch.zeros_like(tensor)

    return map_tensors(inputs, change)


def _differ(one: Array, other: Array) -> bool:
    return one.shape != other.shape or bool((np.asarray(one) != np.asarray(other)).any())


def _masks(value: bool) -> Change:
    return lambda tensor, _: torch.full_like(tensor, value) if is_mask(tensor) else tensor


def _negated(tensor: torch.Tensor, _: Draw) -> torch.Tensor:
    # An infinity of the user's stands for "masked": with the other sign it stands for nothing.
    return torch.where(tensor.isinf(), tensor, -tensor)


def _enlarged(tensor: torch.Tensor, _: Draw) -> torch.Tensor:
    # Not so in half precision: what overflows there says nothing about the file.
    return tensor * 100 if torch.finfo(tensor.dtype).max > _HALF_RANGE else tensor


def _diminished(tensor: torch.Tensor, _: Draw) -> torch.Tensor:
    # Not so in half precision and bfloat16: beside any constant, what is left of them is mostly rounding.
    return tensor / 100 if torch.finfo(tensor.dtype).eps < _FINE else tensor


def _repeated(tensor: torch.Tensor, _: Draw) -> torch.Tensor:
    return tensor.reshape(-1)[:1].expand(tensor.numel()).reshape(tensor.shape).clone() if tensor.numel() else tensor


@dataclass(frozen=True)
class EdgeValues:
    """A named change of the inputs' values, of all inputs or of the one called `only`.

    `extreme`: an answer without finite numbers to such values is no evidence, and set aside. `is_note`: a difference is a note,
    and is no failure.
    """

    name: str
    change: Change
    extreme: bool = False
    only: str = ""
    is_note: bool = False


EDGES = (
    EdgeValues("negated", floats(_negated), extreme=True),
    EdgeValues("zeros", floats(lambda tensor, _: torch.zeros_like(tensor)), extreme=True),
    EdgeValues("large", floats(_enlarged), extreme=True),
    EdgeValues("small", floats(_diminished), extreme=True),
    EdgeValues("repeated", floats(_repeated), extreme=True),
    EdgeValues("few-numbers", floats(few_numbers)),
    EdgeValues("all-false", _masks(False)),
    EdgeValues("all-true", _masks(True)),
)
"""Tried at a few middling sizes, in all inputs at once."""

FURTHER_EDGES = tuple(EdgeValues(name, change) for name, change in FURTHER_CHANGES.items())
"""Tried at one small size."""

LARGER = EdgeValues("larger", floats(lambda tensor, draw: _enlarged(tensor, draw) * 10), extreme=True)
"""For calls of the module alone: noise may be added to such values only."""

NAN = EdgeValues("nan", floats(with_nan), is_note=True)
"""Tried at one small size. Few models mean NaN, and MaxPool of onnxruntime loses it: exactness would cost every file."""

MUCH_NAN = EdgeValues("much-nan", floats(with_much_nan), is_note=True)
"""Tried at the smallest size with enough elements: `torch.unique` numbers many NaN in an order of its own."""


def edge_called(name: str) -> EdgeValues | None:
    """The edge values of that name, `zeros` or `zeros in x`; None for random ones."""
    base, _, only = name.partition(_IN)
    edge = next((edge for edge in (*EDGES, *FURTHER_EDGES, NAN, MUCH_NAN) if edge.name == base), None)
    return replace(edge, name=name, only=only) if edge is not None and only else edge


def edges_of(inputs: Inputs, legal: Legal = Legal()) -> Iterator[EdgeValues]:  # noqa: B008 - frozen
    """The edge values of all inputs at once that change something about these inputs."""
    yield from (edge for edge in EDGES if _changes(inputs, edge, legal))


def further_edges_of(inputs: Inputs, legal: Legal) -> Iterator[EdgeValues]:
    """The further edge values that change something; and where several inputs can be changed, each of them alone."""
    yield from (edge for edge in (*FURTHER_EDGES, NAN) if _changes(inputs, edge, legal))
    for base in _ALONE:
        alone = [edge_called(f"{base}{_IN}{name}") for name in legal.positions]
        found = [edge for edge in alone if edge is not None and _changes(inputs, edge, legal)]
        yield from found[:_MOST_INPUTS] if len(found) > 1 else ()


def has_much_nan(inputs: Inputs, legal: Legal) -> bool:
    """Whether these inputs have enough elements for many NaN, and may have them."""
    return _changes(inputs, MUCH_NAN, legal)


def _changes(inputs: Inputs, edge: EdgeValues, legal: Legal) -> bool:
    changed = False

    def note(before: torch.Tensor, after: torch.Tensor) -> None:
        nonlocal changed
        changed = changed or (after is not before and not torch.equal(_bits(after), _bits(before)))

    _mapped(inputs, edge, legal, note)
    return changed


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Unequal for zeros of unequal signs."""
    return torch.stack([tensor, tensor.signbit().to(tensor.dtype)]) if is_wide_float(tensor) else tensor


def with_values(inputs: Inputs, edge: EdgeValues | None, legal: Legal = Legal()) -> Inputs:  # noqa: B008 - frozen
    """A copy of the inputs that has these values; random ones stay as they are."""
    return inputs if edge is None else _mapped(inputs, edge, legal, lambda before, after: None)


def _mapped(inputs: Inputs, edge: EdgeValues, legal: Legal, note: Note) -> Inputs:
    position = -1

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal position
        position += 1
        if edge.only and legal.positions.get(edge.only) != position:
            return tensor
        allowed = legal.range_at(position)
        draw = Draw(torch.Generator().manual_seed(zlib.crc32(edge.name.encode()) + position), allowed)
        after = _inside(edge.change(tensor, draw), allowed)
        note(tensor, after)
        return after

    return map_tensors(inputs, change)


def _inside(tensor: torch.Tensor, legal: tuple[float, float] | None) -> torch.Tensor:
    if legal is None or tensor.dtype is torch.bool or tensor.is_complex():
        return tensor
    low, high = legal if tensor.is_floating_point() else whole_range(tensor, legal)
    return tensor.clamp(low, high)


def is_finite(answer: Answer) -> bool:
    """Whether an answer holds neither NaN nor infinity."""
    return not any(_holds(np.isnan, array) or _holds(np.isinf, array) for array in answer.arrays)


def is_usable(answer: Answer, ordinary: Answer) -> bool:
    """Whether an answer to edge values is evidence: it must not lose numbers that ordinary values give."""
    return not any(
        _holds(test, one) and not _holds(test, other)
        for test in (np.isnan, np.isinf)
        for one, other in zip(answer.arrays, ordinary.arrays, strict=False)
    )


def _holds(test: Callable[[Array], Array], array: Array) -> bool:
    return is_float(array) and bool(test(widen(array)).any())
