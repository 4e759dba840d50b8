"""Find limits that no guard shows: double sizes until the module raises, then bisect between that size and the last one.

`Embedding(32)` over `arange(seq)` captures without a guard and ends at 32; only trying finds it. A table that is too short,
or an `if seq > 512: raise`, is met in the first operators of a call: where calls are dear, calls that are stopped early show
most ends, at any size. They decide only where to look: both sides of an end are then tried by whole calls. A table that is
read late in a call shows in none of these: one size more than it has rows is tried by a whole call, where affordable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from anyshape.domain import Compare, Domain, Number, Ref, Sizes, smallest_known_point
from anyshape.explore.cost_estimates import Costing

Answers = Callable[[Sizes], bool]

FARTHEST = 4096  # a dim without an upper end is tried and compared up to here
SPARED = "left out to keep the calls of the model in proportion to the export; thorough=True tries there, too"
LITTLE = 75_000_000_000  # operations that are never too much: a second or so
_RUNS = 2  # comparing runs the module and the file where the module is tried here
_END = 2  # times what is in proportion, and times the memory bound: for a call at the last size that is answered
_SHARE = 4  # one part in so many of what is in proportion is for whole calls here


def upper_corners(domain: Domain) -> list[dict[str, int]]:
    """For each dim with an upper end, the smallest point at which it is there."""
    found = [
        smallest_known_point(domain, Compare("==", Ref(dim.name), Number(dim.largest_up_to(dim.max) or dim.max)))
        for dim in domain.dims
        if dim.max is not None
    ]
    return [point for point in found if point is not None]


def double_sizes(domain: Domain, start: Sizes, answers: Answers, affordable: Answers) -> list[dict[str, int]]:
    """Double each dim that has no upper end, the others at `start`, until refused, too dear or far enough.

    Returns the points that were too dear. No clock decides: the same export must try the same sizes on every machine.
    """
    too_dear: list[dict[str, int]] = []
    for name in open_dims(domain):
        for sizes in points_upwards(domain, start, name):
            if not affordable(sizes):
                too_dear.append(sizes)
                break
            if not answers(sizes):
                break
    return too_dear


def open_dims(domain: Domain) -> list[str]:
    """The dims without an upper end."""
    return [dim.name for dim in domain.dims if dim.max is None]


def points_upwards(domain: Domain, start: Sizes, name: str) -> Iterator[dict[str, int]]:
    """Points with this dim at larger and larger sizes up to FARTHEST, the other dims at `start`."""
    size = max(2 * start[name], 64) + 1  # odd: a size that divides nothing by accident
    while size <= FARTHEST:
        sizes = move_dim(domain, start, name, size)
        if sizes is None:
            return
        yield sizes
        if size == FARTHEST:
            return
        size = min(2 * size + 1, FARTHEST)


def bisect_bounds(domain: Domain, answered: Sequence[Sizes], refused: Sequence[Sizes], answers: Answers) -> None:
    """Bisect, on each dim, between the outermost answered size and the nearest refused one beyond it."""
    for dim in domain.dims:
        for end in (min(answered, key=lambda sizes: sizes[dim.name]), max(answered, key=lambda sizes: sizes[dim.name])):
            inside = end[dim.name]
            upwards = inside == max(sizes[dim.name] for sizes in answered)
            beyond = [s[dim.name] for s in refused if (s[dim.name] > inside if upwards else s[dim.name] < inside)]
            if not beyond:
                continue
            outside = min(beyond) if upwards else max(beyond)
            while abs(outside - inside) > dim.multiple:
                middle = (inside + outside) // 2 // dim.multiple * dim.multiple
                sizes = move_dim(domain, end, dim.name, middle)
                if sizes is None or middle in (inside, outside):
                    break
                if answers(sizes):
                    inside = middle
                else:
                    outside = middle


def move_dim(domain: Domain, sizes: Sizes, name: str, size: int) -> dict[str, int] | None:
    """The point with one dim moved; where the domain forbids it, the nearest that the solver finds; None if none."""
    multiple = domain.dim(name).multiple
    moved = {**sizes, name: -(-size // multiple) * multiple}
    if domain.contains(moved):
        return moved
    return smallest_known_point(domain, Compare("==", Ref(name), Number(moved[name])))


def is_doubling_dear(domain: Domain, start: Sizes, cost: Costing) -> bool:
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


def double_sizes_by_probes(
    domain: Domain, answered: Sequence[Sizes], answers: Answers, cost: Costing, at_end: Answers
) -> list[dict[str, int]]:
    """Like `double_sizes`, from the cheapest answered point: whole calls while they are in proportion, then such as end early.

    Where one of these raises, the end is bisected by others. Then the first size beyond it is tried by `answers`, and the
    last size before it by `at_end`. Gives the first point of each dim at which no whole call was made for its cost.
    """
    start = min(answered, key=cost.operations)
    dims = open_dims(domain)
    doubling = _Doubling(domain, start, answers, cost, at_end, not cost.refuses_early(start))
    found = (doubling.double(name, cost.in_proportion // _SHARE // len(dims)) for name in dims)
    return [sizes for sizes in found if sizes is not None]


@dataclass(frozen=True)
class _Doubling:
    """One run of `double_sizes_by_probes`. `has_probes`: False where calls that are stopped early raise although the module
    answers."""

    domain: Domain
    start: Sizes
    answers: Answers
    cost: Costing
    at_end: Answers
    has_probes: bool

    def double(self, name: str, left: int) -> dict[str, int] | None:
        """Double one dim; `left` are the operations for whole calls. Gives the first point that costs more."""
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
