"""Wished sizes made into points: kept within the relations by the solver, and within the budget by lowering them.

Wishes come in the order of their weight; the last ones give way first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anyshape.domain.condition import Compare, Condition
from anyshape.domain.dims import Domain, Point, fits
from anyshape.domain.expr import Number, Ref
from anyshape.domain.solve import Session
from anyshape.domain.solver_results import Undecided, wrong_point
from anyshape.findings import InternalError

EFFORT = 200_000  # a tenth of a second or so for one check: counted, not timed, so that the points do not depend on it
PATIENCE_MS = 20_000  # for a machine that hardly moves
_FAILURES = 3


@dataclass(frozen=True)
class Budget:
    """What a point costs, and how much it may cost."""

    cost: Callable[[Mapping[str, int]], int]
    most: int

    def allows(self, point: Point) -> bool:
        return self.cost(point) <= self.most


class Completion:
    """Points of one domain that cost no more than the budget.

    `far` are sizes beyond which a dim without an end is never sent, since the solver likes any size as much as another.
    `too_dear` collects the points that were proposed and cost more than the budget.
    """

    def __init__(self, domain: Domain, far: Mapping[str, int], budget: Budget) -> None:
        self._domain, self._far, self._budget = domain, far, budget
        self._session: Session | None = None
        self._failures = 0
        self.too_dear: dict[tuple[tuple[str, int], ...], None] = {}

    def allows(self, point: Point, conditions: Sequence[Condition] = ()) -> bool:
        """Whether the point is in the domain, keeps the conditions, and is within the budget."""
        return fits(self._domain, conditions, point) and self._budget.allows(point)

    def note_too_dear(self, point: Point) -> None:
        """Remember a point of the domain that costs too much."""
        self.too_dear[tuple((name, point[name]) for name in self._domain.names)] = None

    def raise_size(self, point: Point, name: str, wished: int, conditions: Sequence[Condition] = ()) -> Point:
        """The point with one size as close to the wished one as the others allow, which stay as they are."""
        multiple = self._domain.dim(name).multiple
        low, high = point[name] // multiple, wished // multiple
        while low < high:
            middle = (low + high + 1) // 2
            raised = {**point, name: middle * multiple}
            if self.allows(raised, conditions):
                low, point = middle, raised
            else:
                high = middle - 1
        return point

    def complete(self, wishes: Mapping[str, int], conditions: Sequence[Condition] = ()) -> Point | None:
        """A point with the wished sizes as far as relations and conditions allow, None if the conditions never hold."""
        wished = {name: wishes[name] for name in self._domain.names}
        if fits(self._domain, conditions, wished):
            return wished
        if self._failures >= _FAILURES:
            return None
        equalities = [Compare("==", Ref(name), Number(size)) for name, size in wishes.items()]
        try:
            found = self._solver().find_near(equalities, *conditions)
        except Undecided:
            self._failures += 1
            return None  # one point fewer; nothing is claimed about it
        if found is not None and not fits(self._domain, conditions, found):
            raise InternalError(wrong_point(self._domain.conditions(), found))
        return found

    def afford(self, wishes: Mapping[str, int], conditions: Sequence[Condition] = ()) -> tuple[Point, Point] | None:
        """The same within the budget, and the wishes that were left: the last are lowered as far as it takes."""
        left = dict(wishes)
        point = self.complete(left, conditions)
        if point is None or self._budget.allows(point):
            return None if point is None else (point, left)
        self.note_too_dear(point)
        for name in reversed(list(wishes)):
            wished, left[name] = left[name], self._domain.dim(name).smallest
            point = self._affordable(left, conditions)
            if point is not None:
                return self._raised(point, left, {name: wished}, conditions)
        return None

    def _raised(
        self, point: Point, left: Point, raise_to: Mapping[str, int], conditions: Sequence[Condition]
    ) -> tuple[Point, Point]:
        """The affordable point with the largest size of the one dim up to the wished one, and its wishes."""
        ((name, wished),) = raise_to.items()
        multiple = self._domain.dim(name).multiple
        low, high = left[name] // multiple, wished // multiple
        while low < high:
            middle = (low + high + 1) // 2
            raised = {**left, name: middle * multiple}
            better = self._affordable(raised, conditions)
            if better is None:
                high = middle - 1
            else:
                low, point, left = middle, better, raised
        return point, left

    def _affordable(self, wishes: Point, conditions: Sequence[Condition]) -> Point | None:
        point = self.complete(wishes, conditions)
        return point if point is not None and self._budget.allows(point) else None

    def _solver(self) -> Session:
        if self._session is None:
            self._session = Session(self._domain.names, PATIENCE_MS, EFFORT)
            self._session.require(*self._domain.conditions())
            self._session.require(*(Compare("<=", Ref(name), Number(size)) for name, size in self._far.items()))
        return self._session
