"""Numbers that jump at a threshold of one name: `1.0 if n <= 300 else 0.5`, `2 if t < 270 else 3`.

A jump counts only where both sides of it were seen next to each other, at c and at c + 1, and where the values stay as
they are for long enough afterwards: what jumps at 8 may jump again at 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from anyshape.domain import Compare, Condition, Expr, Number, Op, Ref

Seen = Sequence[tuple[Mapping[str, int], Any]]

_MOST_JUMPS = 4
_FEWEST_BESIDE = 2  # values on each side of a jump
_LONG_ENOUGH = 64


def fit_jumps(seen: Seen) -> tuple[Any, tuple[tuple[Expr, Any], ...]] | None:
    """The first value, and for each jump an expression that is 0 before and 1 after it, with the difference.

    None if the values are not constant between a few sharp jumps of one name.
    """
    for name in seen[0][0] if seen else ():
        rows = _by_size(seen, name)
        jumps = _jumps(rows) if rows is not None else None
        if rows is not None and jumps:
            steps = tuple((_step(name, size), after - before) for size, before, after in jumps)
            return rows[0][1], steps
    return None


def find_break(seen: Seen, names: Sequence[str]) -> Condition | None:
    """`name > c` where the values jump for the first time; None if no jump of these names was seen on both sides."""
    for name in names:
        if any(name not in point for point, _ in seen):
            continue
        rows = _by_size(seen, name)
        if rows is None:
            continue
        for place, ((size, value), (following, other)) in enumerate(pairwise(rows)):
            if value == other:
                continue
            if following != size + 1 or place + 1 < _FEWEST_BESIDE:
                break
            return Compare(">", Ref(name), Number(size))
    return None


def _by_size(seen: Seen, name: str) -> list[tuple[int, Any]] | None:
    """The values by sizes of this name, in ascending order; None if another name changes them, too."""
    found: dict[int, Any] = {}
    for point, value in seen:
        if found.setdefault(point[name], value) != value:
            return None
    return sorted(found.items())


def _jumps(rows: list[tuple[int, Any]]) -> list[tuple[int, Any, Any]] | None:
    """(last size before, value before, value after) of each jump; None if one is not sharp, or there are too many."""
    found: list[tuple[int, Any, Any]] = []
    beside = 0
    for (size, before), (following, after) in pairwise(rows):
        beside += 1
        if before == after:
            continue
        if following != size + 1 or beside < _FEWEST_BESIDE or len(found) == _MOST_JUMPS:
            return None
        found.append((size, before, after))
        beside = 0
    if not found or beside + 1 < _FEWEST_BESIDE:
        return None
    last = found[-1][0]
    return found if rows[-1][0] - last >= min(last + 1, _LONG_ENOUGH) else None


def _step(name: str, last: int) -> Expr:
    """0 up to `last`, 1 beyond."""
    return Op("min", (Number(1), Op("max", (Number(0), Ref(name) - last))))
