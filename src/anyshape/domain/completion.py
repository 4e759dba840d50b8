"""Wished sizes made into points: kept within the relations by the solver, and within the budget by lowering them.

Wishes come in the order of their weight; the last ones give way first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from anyshape.domain.answers import Undecided
from anyshape.domain.box import fits
from anyshape.domain.condition import Compare, Condition
from anyshape.domain.dims import Domain
from anyshape.domain.expr import Number, Ref
from anyshape.domain.solve import Session

Sizes = dict[str, int]
_TIMEOUT_MS = 3000


class Completion:
    """Points of one domain that cost no more than the budget.

    `far` are sizes beyond which a dim without an end is never sent, since the solver likes any size as much as another.
    """

    def __init__(self, domain: Domain, far: Mapping[str, int], cost: Callable[[Sizes], int], budget: int) -> None:
        self._domain, self._cost, self._budget = domain, cost, budget
        capped = Domain(tuple(replace(dim, max=far[dim.name]) for dim in domain.dims), domain.relations)
        self._capped = capped
        self._session: Session | None = None

    def complete(self, wishes: Mapping[str, int], conditions: Sequence[Condition] = ()) -> Sizes | None:
        """A point with the wished sizes as far as relations and conditions allow, None if the conditions never hold."""
        wished = {name: wishes[name] for name in self._domain.names}
        if fits(self._domain, conditions, wished):
            return wished
        equalities = [Compare("==", Ref(name), Number(size)) for name, size in wishes.items()]
        try:
            found = self._solver().find_near(equalities, *conditions)
        except Undecided:
            return None  # one point fewer; nothing is claimed about it
        return found

    def afford(self, wishes: Mapping[str, int], conditions: Sequence[Condition] = ()) -> Sizes | None:
        """The same within the budget: the last wishes are lowered as far as it takes, and no farther."""
        point = self.complete(wishes, conditions)
        if point is None or self._cost(point) <= self._budget:
            return point
        lowered = dict(wishes)
        for name in reversed(list(wishes)):
            smallest = self._domain.dim(name).smallest
            point = self._affordable(lowered, name, smallest, conditions)
            if point is not None:
                return self._raised(lowered, name, point, conditions)
            lowered[name] = smallest
        return None

    def _raised(self, wishes: Sizes, name: str, point: Sizes, conditions: Sequence[Condition]) -> Sizes:
        """The affordable point with the largest size of this dim up to the wished one."""
        dim = self._domain.dim(name)
        low, high = dim.smallest // dim.multiple, wishes[name] // dim.multiple
        while low < high:
            middle = (low + high + 1) // 2
            better = self._affordable(wishes, name, middle * dim.multiple, conditions)
            if better is None:
                high = middle - 1
            else:
                low, point = middle, better
        return point

    def _affordable(self, wishes: Sizes, name: str, size: int, conditions: Sequence[Condition]) -> Sizes | None:
        point = self.complete({**wishes, name: size}, conditions)
        return point if point is not None and self._cost(point) <= self._budget else None

    def _solver(self) -> Session:
        if self._session is None:
            self._session = Session(self._domain.names, _TIMEOUT_MS)
            self._session.require(*self._capped.conditions())
        return self._session
