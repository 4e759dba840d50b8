"""Which pairs of levels of two dims some point has met, and the point that would meet the most of the others.

Greedy: each proposal starts from a pair that nobody met and gives every other dim the level that meets the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

Target = tuple[tuple[str, str], ...]


class Covering:
    """The targets still open: every level of every dim alone, and every pair of levels of two dims."""

    def __init__(self, levels: Mapping[str, Sequence[str]]) -> None:
        self._levels = {name: tuple(choices) for name, choices in levels.items()}
        singles = [((name, level),) for name, choices in self._levels.items() for level in choices]
        pairs = [(*one, *two) for one, two in combinations(singles, 2) if one[0][0] != two[0][0]]
        self._open: dict[Target, None] = dict.fromkeys([*singles, *pairs])
        self._used: Counter[tuple[str, str]] = Counter()

    def meet(self, point: Mapping[str, str]) -> int:
        """Close what a point with these levels meets; returns how many targets that were."""
        items = [(name, point[name]) for name in self._levels]
        self._used.update(items)
        met = [target for target in [*((item,) for item in items), *combinations(items, 2)] if target in self._open]
        for target in met:
            del self._open[target]
        return len(met)

    def propose(self) -> tuple[Target, dict[str, str]] | None:
        """An open target, and levels for all dims that meet it and as many others as can be; None if all are met."""
        if not self._open:
            return None
        target = max(self._open, key=len)
        chosen = dict(target)
        for name in sorted(self._levels, key=lambda name: name not in chosen):
            if name not in chosen:
                chosen[name] = max(self._levels[name], key=lambda level: self._gain((name, level), chosen))
        return target, chosen

    def is_open(self, target: Target) -> bool:
        return target in self._open

    def give_up(self, target: Target) -> None:
        """No sizes meet this target."""
        self._open.pop(target, None)

    def _gain(self, item: tuple[str, str], chosen: Mapping[str, str]) -> tuple[int, int]:
        pairs = ((item, other) for other in chosen.items())
        met = sum(pair in self._open or pair[::-1] in self._open for pair in pairs)
        return met, -self._used[item]
