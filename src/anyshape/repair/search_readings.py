"""Find readings of all numbers of a graph that fit together: follow the dims, and where they cannot go on, read the last
number otherwise that has to do with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time

from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_shapes import Choice, Contradiction

Follow = Callable[[Mapping[str, int]], Follower]
_MOST_PASSES = 400
_MOST_SECONDS = 5.0


class SearchEnded(Contradiction):
    """There was no time for all readings: none was found that fits, and one may."""


def find_reading(follow: Follow, fixed: Mapping[str, int], most: int = _MOST_PASSES) -> Follower:
    """The first pass without a contradiction in which `fixed` choices are taken. Raises the furthest Contradiction."""
    decisions: Mapping[str, int] | None = dict(fixed)
    furthest: Contradiction | None = None
    began = process_time()
    for _ in range(most):
        if decisions is None or process_time() - began > _MOST_SECONDS:
            break
        try:
            return follow(decisions)
        except Contradiction as found:
            furthest = found if furthest is None or found.progress > furthest.progress else furthest
            decisions = next_decisions(found.choices, fixed, found.dims)
    assert furthest is not None
    if decisions is not None:
        raise SearchEnded(furthest.node, furthest.why, furthest.dims) from furthest
    raise furthest


def next_decisions(
    choices: tuple[Choice, ...], fixed: Mapping[str, int], dims: frozenset[str] = frozenset()
) -> dict[str, int] | None:
    """The last choice about these dims read otherwise, the choices before it as they were; None where none is left."""
    for place in range(len(choices) - 1, -1, -1):
        choice = choices[place]
        is_about = not dims or choice.dims & dims
        if choice.key not in fixed and is_about and choice.taken + 1 < len(choice.readings):
            before = {each.key: each.taken for each in choices[:place]}
            return {**before, **fixed, choice.key: choice.taken + 1}
    return None
