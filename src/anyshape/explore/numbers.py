"""Sizes at the numbers of the user's code, and on both sides of each: where a line may begin to do something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from anyshape.domain import Compare, Number, Ref, Undecided, find_point
from anyshape.explore.cost import CHEAP
from anyshape.inputs import Declared

Sizes = Mapping[str, int]

_MOST = 64


def sizes_at_numbers(declared: Declared, numbers: Sequence[int], cost: Callable[[Sizes], int]) -> list[dict[str, int]]:
    """Every dim at every number, next to it and at twice of it, one dim at a time: what shows there is this dim's doing."""
    names = declared.domain.names
    few = numbers[: _MOST // (4 * len(names))] if names else ()
    values = dict.fromkeys(near for number in few for near in (number, number + 1, number - 1, 2 * number))
    points = [_alone(declared, name, value) for value in values for name in names]
    return [sizes for sizes in points if sizes is not None and cost(sizes) <= CHEAP]


def _alone(declared: Declared, name: str, value: int) -> dict[str, int] | None:
    """The example's sizes with this one; where the rules do not have that, any sizes with it."""
    sizes = {**declared.example_sizes, name: value}
    if declared.domain.contains(sizes):
        return sizes
    if not declared.domain.dim(name).contains(value):
        return None
    try:
        return find_point(declared.domain, Compare("==", Ref(name), Number(value)))
    except Undecided:
        return None
