"""Points at which rules show: each dim moved alone from an answered point, and dims moved together.

A module that answers at h = 64 and not at 65 is tried at 66, 67, ... until it answers again: the step between is its multiple.
A dim that cannot move alone is moved together with the others that cannot.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from anyshape.domain import Domain, Sizes
from anyshape.explore.rule_grammar import LARGEST_MULTIPLE

Answers = Callable[[Sizes], bool]

_NEAR = (1, 2, 3, 5, -1, -2)
_SMALL = (1, 2, 3, 4, 6)
_TOGETHER = (1, 2, 3, 5, 6, 8)
_MOST_TOGETHER = 200


def gather_evidence(domain: Domain, base: Sizes, others: Sequence[Sizes], answers: Answers) -> None:
    """Try the module around answered points: thoroughly around `base`, at a few places around the others.

    `answers` keeps what it finds; it is False for points that are outside of the domain or cost too much.
    """
    stuck = [name for name in domain.names if not _move_alone(base, name, answers)]
    for other in others:
        for name in stuck:
            for size in _near(other[name]):
                answers({**other, name: size})
    together = itertools.chain.from_iterable(_moved_together(stuck, point) for point in (base, *others))
    for point in itertools.islice(together, _MOST_TOGETHER):
        answers(point)


def _near(size: int) -> list[int]:
    return [other for other in dict.fromkeys([*(size + step for step in _NEAR), *_SMALL]) if other >= 1]


def _move_alone(base: Sizes, name: str, answers: Answers) -> bool:
    """Whether the module answers at each near size of this dim. If not, the next sizes that it takes are found."""
    size = base[name]
    taken = [answers({**base, name: other}) for other in _near(size)]  # each is evidence, also after a refusal
    if all(taken):
        return True
    upward = _next_answered(base, name, range(size + 1, size + LARGEST_MULTIPLE + 1), answers)
    downward = _next_answered(base, name, range(size - 1, max(0, size - LARGEST_MULTIPLE - 1), -1), answers)
    for step in {abs(other - size) for other in (upward, downward) if other is not None}:
        for other in (size + 2 * step, size + 3 * step, size + step + 1, size + step + step // 2, size + 7 * step):
            answers({**base, name: other})
        _find_smallest(base, name, step, answers)
    return False


def _next_answered(base: Sizes, name: str, sizes: range, answers: Answers) -> int | None:
    return next((size for size in sizes if answers({**base, name: size})), None)


def _find_smallest(base: Sizes, name: str, step: int, answers: Answers) -> None:
    """Bisect, in multiples of the step, between an answered size and the nearest one below that is refused."""
    inside, outside = base[name] // step, 0
    rest = base[name] % step
    while inside - outside > 1:
        middle = (inside + outside) // 2
        if answers({**base, name: middle * step + rest}):
            inside = middle
        else:
            outside = middle


def _moved_together(stuck: Sequence[str], base: Sizes) -> Iterator[dict[str, int]]:
    """Points at which several of these dims have moved: to one size, by one step, by one factor, one of them to 1."""
    groups = [group for count in (len(stuck), 2) for group in itertools.combinations(stuck, count) if count > 1]
    for group in dict.fromkeys(groups):
        for size in _TOGETHER:
            yield {**base, **dict.fromkeys(group, size)}
        for step in (1, 4):
            yield {**base, **{name: base[name] + step for name in group}}
        for factor in (2, 3):
            yield {**base, **{name: base[name] * factor for name in group}}
    for one, other in itertools.permutations(stuck, 2):
        for size in (1, 4, 7):
            yield {**base, one: size, other: 1}
            yield {**base, one: base[other], other: size}
            yield {**base, one: base[one] + size, other: max(1, base[other] - size)}
