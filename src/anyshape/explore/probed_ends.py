"""Where answers of a dear module end: a few calls at small sizes, and further up calls that are stopped early.

A table that is too short, or an `if seq > 512: raise`, is met in the first operators of a call. So a call that is stopped
after a few operations shows most ends, at any size and at little cost. It decides only where to look: both sides of an end
are then tried by whole calls. A table that is read late in a call shows in none of these: one size more than it has rows is
tried by a whole call, where that is affordable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anyshape.domain import Domain, Sizes
from anyshape.explore.cost_estimates import Costing
from anyshape.explore.limits import move_dim, open_dims, points_upwards

Answers = Callable[[Sizes], bool]

SPARED = "left out to keep the calls of the model in proportion to the export; thorough=True tries there, too"
LITTLE = 75_000_000_000  # operations that are never too much: a second or so

_RUNS = 2  # comparing runs the module and the file where the module is tried here
_END = 2  # times what is in proportion, and times the memory bound: for a call at the last size that is answered
_SHARE = 4  # one part in so many of what is in proportion is for whole calls here


def is_climb_dear(domain: Domain, start: Sizes, cost: Costing) -> bool:
    """Whether whole calls at ever larger sizes of all open dims, the others at `start`, are out of proportion."""
    left = max(cost.in_proportion // _RUNS, LITTLE)
    for name in () if cost.is_thorough else open_dims(domain):
        for sizes in points_upwards(domain, start, name):
            if cost.excess(sizes):
                break
            left -= cost.operations(sizes)
            if left < 0:
                return True
    return False


def climb_by_probes(
    domain: Domain, answered: Sequence[Sizes], answers: Answers, cost: Costing, at_end: Answers
) -> list[dict[str, int]]:
    """Like `climb`, from the cheapest answered point: whole calls while they are in proportion, then such as end early.

    Where one of these raises, the end is bisected by others. Then the first size beyond it is tried by `answers`, and the
    last size before it by `at_end`. Gives the first point of each dim at which no whole call was made for its cost.
    """
    start = min(answered, key=cost.operations)
    dims = open_dims(domain)
    climbing = _Climbing(domain, start, answers, cost, at_end, not cost.refuses_early(start))
    found = (climbing.climb(name, cost.in_proportion // _SHARE // len(dims)) for name in dims)
    return [sizes for sizes in found if sizes is not None]


@dataclass(frozen=True)
class _Climbing:
    """`has_probes` is False where a call that is stopped early raises although the module answers."""

    domain: Domain
    start: Sizes
    answers: Answers
    cost: Costing
    at_end: Answers
    has_probes: bool

    def climb(self, name: str, left: int) -> dict[str, int] | None:
        """One dim; `left` are the operations for whole calls. Gives the first point that costs more."""
        last = self.start[name]
        upwards = list(points_upwards(self.domain, self.start, name))
        for place, sizes in enumerate(upwards):
            left -= self.cost.operations(sizes)
            if left < 0 or self.cost.excess(sizes):
                is_found = self._find_end_among(name, last, upwards[place:]) or self._find_end_of_table(name, last)
                return None if is_found else sizes
            if not self.answers(sizes):
                self._find_end_among(name, last, [sizes])
                return None
            last = sizes[name]
        return None

    def _find_end_among(self, name: str, last: int, points: Sequence[Sizes]) -> bool:
        """Whether a call raises early at the last of these points that can be probed; then the end is found."""
        farthest = next((sizes for sizes in reversed(points) if self.cost.can_be_probed(sizes)), None)
        if farthest is None or not self._refuses_early(farthest):
            return False
        self._find_end(name, last, farthest[name])
        return True

    def _find_end_of_table(self, name: str, last: int) -> bool:
        """Whether a whole call raises at one size more than a table has rows. Then its rows are tried; where these are refused
        as well, `bisect_bounds` finds the end."""
        multiple, left = self.domain.dim(name).multiple, _END * self.cost.in_proportion
        for rows in self.cost.table_rows:
            beyond = move_dim(self.domain, self.start, name, (rows // multiple + 1) * multiple)
            if rows <= last or beyond is None:
                continue
            left -= self.cost.operations(beyond)
            if left < 0 or not self._is_affordable(beyond):
                return False
            if not self.answers(beyond):
                end = move_dim(self.domain, self.start, name, beyond[name] - multiple)
                if end is not None:
                    self.answers(end)
                return True
            last = beyond[name]
        return False

    def _refuses_early(self, sizes: Sizes) -> bool:
        return self.has_probes and self.cost.refuses_early(sizes)

    def _find_end(self, name: str, inside: int, outside: int) -> None:
        """Bisect between two sizes by calls that are stopped early, and try both sides of the end."""
        multiple = self.domain.dim(name).multiple
        while outside - inside > multiple:
            middle = (inside + outside) // 2 // multiple * multiple
            sizes = move_dim(self.domain, self.start, name, middle)
            if sizes is None or middle in (inside, outside):
                return
            if self._refuses_early(sizes):
                outside = middle
            else:
                inside = middle
        beyond, end = (move_dim(self.domain, self.start, name, size) for size in (outside, inside))
        if beyond is not None and end is not None and not self.answers(beyond) and self._is_affordable(end):
            self.at_end(end)

    def _is_affordable(self, end: Sizes) -> bool:
        """Whether one whole call at the end of a dim may be made: the contract is right only with it."""
        is_short = self.cost.operations(end) <= _END * self.cost.in_proportion
        return not self.cost.excess(end) or (is_short and self.cost.elements(end) <= _END * self.cost.most_elements)
