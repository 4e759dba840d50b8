"""How many further points may be tried while rules are learned, in proportion to the rest of the export."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from anyshape.domain import Condition, Domain, holds
from anyshape.explore.cost_estimates import Costing
from anyshape.explore.limits import LITTLE

RUNS = 2  # comparing runs the module and the file where the module is tried here: so the same points are in proportion
_WORK = 30  # times the work of an ordinary point that learning a rule may take in all
_DEAR = 40
_PART_OF_ONE = 8  # one part in so many of the operations that are left is for one point
_USUAL = 2  # times the operations of the example: calls that are as dear as that


class TrialAllowance:
    """Which further points may be tried: those of the domain that are cheap, until the work of all is spent.

    A few that cost more may be, where rules expect a refusal: refusals come early in a call.
    """

    def __init__(self, domain: Domain, cost: Costing, answered: Sequence[Mapping[str, int]]) -> None:
        """`answered` are points that are known to be answered, the example first."""
        self._domain = domain
        self._cost = cost
        self._left = _WORK * cost.cheap
        self._rules: Sequence[Condition] = ()
        self._dear = _DEAR
        self._least = min(map(cost.operations, answered))
        self._usual = _USUAL * cost.operations(answered[0])
        self._operations = cost.in_proportion // RUNS if cost.is_dear else None  # for points at which rules hold
        # For all answered calls before rules are known; None: no limit. Calls like that of the example are always allowed.
        self._whole_calls = None if cost.is_thorough else max(cost.in_proportion, LITTLE)
        self.denied = False  # whether a point at which the rules expect a refusal costs too much

    def expect_refusals(self, rules: Sequence[Condition]) -> None:
        self._rules, self.denied = rules, False

    def spend(self, sizes: Mapping[str, int]) -> None:
        """Take the operations of a call that was answered, and so ran to its end, from those of all such calls."""
        if self._whole_calls is not None:
            self._whole_calls = max(0, self._whole_calls - self._cost.operations(sizes))

    @property
    def _most_operations(self) -> float:
        """Of one call before rules are known."""
        return math.inf if self._whole_calls is None else max(self._whole_calls // _PART_OF_ONE, self._usual)

    def __call__(self, sizes: Mapping[str, int]) -> bool:
        if self._left <= 0 or not self._domain.contains(sizes):
            return False
        if not self._rules and self._cost.operations(sizes) > self._most_operations:
            return False
        is_inside = all(holds(rule, sizes) for rule in self._rules)
        if self._rules and is_inside and not self._takes_operations(sizes):
            return False
        price = self._cost(sizes)
        if price > self._cost.cheap and not is_inside:
            if self._dear and not self._cost.excess(sizes):
                self._dear -= 1
                return True
            self.denied = True
        self._left -= price if price <= self._cost.cheap else 0
        return price <= self._cost.cheap

    def _takes_operations(self, sizes: Mapping[str, int]) -> bool:
        """Whether a call at which rules hold is in proportion to what is left; if so, its operations are taken from that."""
        if self._operations is None:
            return True
        part = self._operations // _PART_OF_ONE
        if part < self._least or (operations := self._cost.operations(sizes)) > part:
            return False
        self._operations -= operations
        return True
