"""Values that `topk` and `sort` put in order although they differ by less than rounding: the module's answers in other orders.

A detector keeps the 300 best of 8,000 scores. Two of them that differ by less than rounding change places in a file that
adds up in another order, and so do all rows that follow from them. The module runs again with such values in other orders.
How far its answers move is the sensitivity of each element, as it is for inputs that change by a rounding error.

values in order  5.3 | 5.1000001 5.1000000 5.0999999 | 4.8   ->   each group of neighbours that rounding may swap is rotated
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.runtime.child_messages import Array
from anyshape.verify.choices import EACH_ONCE, Choice, Product, Watched, base_name, is_product, watch_choices
from anyshape.verify.compare import is_float, widen
from anyshape.verify.noise import Yardstick, distance_between
from anyshape.verify.reference import Answer, CallInputs, Reference
from anyshape.verify.ties import MOST_APART, ROUNDINGS_APART, look_at_choices

_MOST_TURNS = 8


def move_near_ties(
    reference: Reference,
    inputs: CallInputs,
    expected: Sequence[Array],
    choices: Sequence[Choice],
    products: Sequence[Product] = (),
) -> Iterator[tuple[Array, ...]]:
    """Per-element sensitivity to the order of values that are near to each other, larger with each further order.

    First zeros, which are all where no values are near. `expected` is the module's own answer, `choices` what `topk` and `sort`
    order on the way to it, with the rounding of the values. Integers that differ are infinitely sensitive; positions
    themselves are not, they are judged in `ties`. `products` were computed before the first choice, and are not computed again.
    """
    found = tuple(np.zeros(array.shape) for array in expected)
    is_chosen = [any(choice.is_given_as(array) for choice in choices) for array in expected]
    yield found
    groups = [found for found in map(_groups_of, choices) if found is not None]
    for turn in _turns(groups):
        with _Rotated(choices, turn, products):
            answer = reference.run(inputs, watched=True)
        if isinstance(answer, Answer) and len(answer.arrays) == len(found):
            moved = map(distance_between, expected, answer.arrays)
            found = tuple(
                one if is_kept else np.maximum(one, two)
                for one, two, is_kept in zip(found, moved, is_chosen, strict=True)
            )
            yield found


def _turns(groups: Sequence[_Groups]) -> list[int]:
    """By how many places to rotate: near places first, in both directions, since rounding moves values by few places.

    0 is the order of a stable sort: another order than the module's own where values are equal. A turn that is half as
    long as a group, or longer, repeats one in the other direction.
    """
    longest = max((found.longest for found in groups), default=0)
    near = [turn for turn in range(-((longest - 1) // 2), longest // 2 + 1) if turn != 0]
    both = sorted(near, key=lambda turn: (abs(turn), -turn))
    has_equals = any(found.has_free_equals for found in groups)
    return [*both[:2], *([0] if has_equals else []), *both[2:]][:_MOST_TURNS]


def is_moved_further(choices: Sequence[Choice], before: Sequence[Choice]) -> bool:
    """Whether the module may answer otherwise than with the same choices and the rounding that was assumed before.

    One choice alone has the values that were seen, so the same groups of near values give the same answers. What a later
    choice has to order may be new in each run: it is the same only with the same rounding.
    """
    if len(choices) == len(before) == 1:
        one, other = _groups_of(choices[0]), _groups_of(before[0])
        return one is not None and other is not None and not one.are_like(other)
    return any(np.any(np.not_equal(one.rounding, other.rounding)) for one, other in zip(choices, before, strict=True))


class _Rotated(TorchDispatchMode):  # type: ignore[misc]
    """`topk` and `sort` give values that are near to each other in another order: `choices` are those of the calls in turn.

    Up to the first of them the run is the one in which the choices were seen, so each product gives what it gave there.
    """

    def __init__(self, choices: Sequence[Choice], turn: int, products: Sequence[Product]) -> None:
        super().__init__()
        self._choices = iter(choices)
        self._products = iter(products)
        self._turn = turn

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if is_product(func):
            known, kept = next(self._products, (None, None))
            if known is func and kept is not None:
                return kept.clone()
        result = func(*args, **given)
        choice = next(self._choices, None) if base_name(func) in EACH_ONCE else None
        if choice is None:
            return result
        self._products = iter(())
        named = {each.name: value for each, value in zip(func._schema.arguments, args, strict=False)} | given
        return self._ordered(named["self"], named, choice) or result

    def _ordered(
        self, x: torch.Tensor, named: Mapping[str, Any], choice: Choice
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Values and indices in another order; None where the order is settled."""
        if not x.is_floating_point() or x.dim() == 0 or tuple(x.shape) != choice.values.shape:
            return None
        dim = named.get("dim", -1) % x.dim()
        descending = bool(named.get("largest", True) if "k" in named else named.get("descending", False))
        values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
        reach = torch.as_tensor(choice.rounding, dtype=torch.float64) * ROUNDINGS_APART
        groups = _Groups(values.double(), dim, reach, keeps_equals=bool(named.get("stable")))
        order = groups.rotated(self._turn)
        if order is None:
            return None
        indices = indices.gather(dim, order).narrow(dim, 0, named.get("k", x.shape[dim]))
        return x.gather(dim, indices), indices


def _groups_of(choice: Choice) -> _Groups | None:
    """The groups in the module's own order; None for integers, and where there are no values."""
    if not is_float(choice.values) or not choice.values.size:
        return None
    values = torch.as_tensor(widen(choice.values)).sort(dim=choice.axis, descending=choice.descending).values
    reach = torch.as_tensor(choice.rounding, dtype=torch.float64) * ROUNDINGS_APART
    return _Groups(values, choice.axis, reach, keeps_equals=choice.is_stable)


class _Groups:
    """Neighbours among ordered values that rounding may swap.

    With `keeps_equals`, values that no rounding has touched stay in their order if they are equal.
    """

    def __init__(self, values: torch.Tensor, dim: int, reach: torch.Tensor, *, keeps_equals: bool) -> None:
        self._shape, self._dim = values.shape, dim
        finite = values.nan_to_num(0.0, 0.0, 0.0).abs().amax(dim, keepdim=True)
        reach = torch.minimum(reach, finite * torch.finfo(torch.float32).eps * MOST_APART)
        near = values.diff(dim=dim).abs() <= reach  # false for infinity and NaN, which have no distance
        self._near = near & (reach > 0) if keeps_equals else near
        self.has_free_equals = not keeps_equals and bool((values.diff(dim=dim) == 0).any())

    @property
    def longest(self) -> int:
        """The number of values in the longest group; 0 where no two values are near."""
        return int(self._ends()[2].max()) if bool(self._near.any()) else 0

    def are_like(self, other: _Groups) -> bool:
        """Whether the same places are near to each other."""
        return torch.equal(self._near, other._near)

    def rotated(self, turn: int) -> torch.Tensor | None:
        """For each place the place whose value comes there; None where the turn is as long as each group."""
        if not bool(self._near.any()):
            return None
        places, first, length = self._ends()
        is_changed = turn == 0 or bool((turn % length != 0).any())
        return first + (places - first + turn) % length if is_changed else None

    def _ends(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """For each place itself, the first place of its group, and how many values that has."""
        dim, size = self._dim, self._shape[self._dim]
        places = torch.arange(size).reshape([-1 if each == dim else 1 for each in range(len(self._shape))])
        places = places.expand(self._shape)
        edge = torch.zeros_like(self._near.narrow(dim, 0, 1))
        has_left, has_right = torch.cat([edge, self._near], dim), torch.cat([self._near, edge], dim)
        first = torch.where(has_left, 0, places).cummax(dim).values
        last = torch.where(has_right, size, places).flip(dim).cummin(dim).values.flip(dim)
        return places, first, last - first + 1


Noise = Callable[[bool], Iterator[Sequence[Array]]]


def find_sensitivities(
    reference: Reference,
    inputs: CallInputs,
    answers: tuple[Sequence[Array], Sequence[Array]],
    yardstick: Yardstick | None,
    noise: Noise,
) -> Iterator[Sequence[Array]]:
    """Per-element sensitivity, larger with each answer of the module: infinitely where another choice among equal values is
    as good, not at all where torch documents which one it is.

    `answers` are the module's and the file's. `noise` gives the sensitivity to rounding; its argument is whether equal
    values stay equal.
    """
    expected, actual = answers
    watched = Watched(partial(reference.run, watched=True), inputs)
    choices = look_at_choices(watched, expected, actual)
    moved: Sequence[Array] = choices.free
    for moved in move_near_ties(reference, inputs, expected, choices.ordered, watched.products):
        yield _joined(choices.free, moved, choices.fixed)
    if yardstick is not None and watched.choices:  # which takes long: often the least rounding explains enough
        rounded = look_at_choices(watched, expected, actual, watch_choices(yardstick.double_answer, inputs))
        is_further = is_moved_further(rounded.ordered, choices.ordered)
        choices = rounded
        yield _joined(choices.free, moved, choices.fixed)
        further = move_near_ties(reference, inputs, expected, choices.ordered, watched.products)
        for moved in further if is_further else ():
            yield _joined(choices.free, moved, choices.fixed)
    free = _joined(choices.free, moved, choices.fixed)
    for sensitivities in noise(choices.has_fixed_ties):
        yield _joined(sensitivities, free, choices.fixed)


def _joined(one: Sequence[Array], other: Sequence[Array], fixed: Sequence[Array]) -> list[Array]:
    """The larger sensitivity of each element; none where the very position is documented."""
    return [np.where(is_fixed, 0.0, np.maximum(a, b)) for a, b, is_fixed in zip(one, other, fixed, strict=True)]
