"""Solve conditions by z3, which no other file imports; turn wished sizes into points of the domain within a budget.

z3 divides as Euclid did, so `//` and `%` are encoded as Python has them; a comparison that divides by zero does not
hold, as in `holds`. A session has one limit for all of its checks.

Wishes come in the order of their weight; the last ones give way first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import z3

from anyshape.domain.bound import Undecided, wrong_point
from anyshape.domain.condition import All, AnyOf, Compare, Condition, Not, all_of, format_condition
from anyshape.domain.dims import Domain, Point, fits
from anyshape.domain.expr import ROOT, Expr, Number, Op, Ref
from anyshape.findings import InternalError

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
A_SECOND = 5_000_000  # steps of z3 in a second or so: 3.5 to 8 million, by the kind of question
EFFORT = A_SECOND // 25  # for one check of many
PATIENCE = 20 * A_SECOND  # for all of them together
_FAILURES = 3
_CHECKS = (
    3  # one check gets one part in so many: the last steps of a long one, with roots of polynomials, are far slower
)


class Session:
    """A solver over non-negative sizes of these names that collects conditions; alike checks share their work.

    The limits are counted in z3's own steps, so that a busy machine decides what a quiet one does: `steps` for all checks
    together, and no more than `each` (a third, unless given) for one of them. No clock decides.
    """

    def __init__(self, names: Sequence[str], steps: int, each: int | None = None) -> None:
        self._steps, self._each = steps, each or max(1, steps // _CHECKS)
        self._steps_left, self._steps_taken = steps, 0
        # A context of its own: sessions in several threads do not meet, and no result depends on earlier questions.
        self._context = z3.Context()
        self._solver = z3.SimpleSolver(ctx=self._context)
        self._refs = {name: z3.Int(name, self._context) for name in names}
        self._required: list[Condition] = []
        self._solver.add([ref >= 0 for ref in self._refs.values()])

    def require(self, *conditions: Condition) -> None:
        """Add conditions that every later point must keep."""
        self._required.extend(conditions)
        self._solver.add([self._condition(condition) for condition in conditions])

    def find(self, *conditions: Condition) -> dict[str, int] | None:
        """Sizes at which all that is required and these conditions hold, None if there are none, else Undecided."""
        self._solver.push()
        try:
            self._solver.add([self._condition(condition) for condition in conditions])
            if self._check(conditions) == z3.unsat:
                return None
            return self._point()
        finally:
            self._solver.pop()

    def find_core(self, rules: Sequence[Condition]) -> list[Condition] | None:
        """Some of the rules that cannot hold together (not always the fewest), None if all can, else Undecided."""
        switches = [z3.Bool(f"rule {index}", self._context) for index in range(len(rules))]
        self._solver.push()
        try:
            for switch, rule in zip(switches, rules, strict=True):
                self._solver.add(z3.Implies(switch, self._condition(rule)))
            if self._check(rules, *switches) == z3.sat:
                return None
            core = {switch.get_id() for switch in self._solver.unsat_core()}
            return [rule for switch, rule in zip(switches, rules, strict=True) if switch.get_id() in core]
        finally:
            self._solver.pop()

    def find_near(self, wishes: Sequence[Condition], *conditions: Condition) -> dict[str, int] | None:
        """Sizes at which the conditions hold, and the wishes as far as they can; the last ones are given up first."""
        switches = [z3.Bool(f"wish {index}", self._context) for index in range(len(wishes))]
        kept = list(range(len(wishes)))
        self._solver.push()
        try:
            self._solver.add([self._condition(condition) for condition in conditions])
            for switch, wish in zip(switches, wishes, strict=True):
                self._solver.add(z3.Implies(switch, self._condition(wish)))
            while self._check(conditions, *(switches[index] for index in kept)) == z3.unsat:
                core = {switch.get_id() for switch in self._solver.unsat_core()}
                blamed = [index for index in kept if switches[index].get_id() in core]
                if not blamed:
                    return None
                kept.remove(blamed[-1])
            return self._point()
        finally:
            self._solver.pop()

    def _point(self) -> dict[str, int]:
        model = self._solver.model()
        return {name: model.eval(ref, model_completion=True).as_long() for name, ref in self._refs.items()}

    def _check(self, conditions: Sequence[Condition], *switches: Any) -> Any:
        if self._steps_left > 0:
            self._solver.set("rlimit", min(self._each, self._steps_left))
            status = self._solver.check(*switches)
            self._count_steps()
            if status != z3.unknown:
                return status
        raise Undecided(format_condition(all_of([*self._required, *conditions])), self._steps)

    def _count_steps(self) -> None:
        taken = self._solver.statistics().get_key_value("rlimit count")
        self._steps_left, self._steps_taken = self._steps_left - (taken - self._steps_taken), taken

    def _condition(self, condition: Condition) -> Any:
        if isinstance(condition, Compare):
            return self._comparison(condition)
        if isinstance(condition, All):
            return z3.And([z3.BoolVal(True, self._context), *map(self._condition, condition.parts)])
        if isinstance(condition, AnyOf):
            return z3.Or([z3.BoolVal(False, self._context), *map(self._condition, condition.parts)])
        if isinstance(condition, Not):
            return z3.Not(self._condition(condition.part))
        raise TypeError(f"not a condition: {condition!r}")

    def _comparison(self, compare: Compare) -> Any:
        divisors: list[Any] = []
        left, right = self._expr(compare.left, divisors), self._expr(compare.right, divisors)
        outcome = _OPERATORS[compare.op](left, right)
        return z3.And([outcome, *(divisor != 0 for divisor in divisors)]) if divisors else outcome

    def _expr(self, expr: Expr, divisors: list[Any]) -> Any:
        """The z3 term; what it divides by is added to the divisors unless it is a number other than 0."""
        if isinstance(expr, Number):
            return z3.IntVal(expr.value, self._context)
        if isinstance(expr, Ref):
            return self._refs[expr.name]
        if not isinstance(expr, Op):
            raise TypeError(f"not an expression: {expr!r}")
        args = [self._expr(arg, divisors) for arg in expr.args]
        if expr.symbol in ("min", "max"):
            return reduce(_smaller if expr.symbol == "min" else _larger, args)
        if expr.symbol == ROOT:
            return self._root(args[0])
        left, right = args
        if expr.symbol in ("//", "%"):
            divisor = expr.args[1]
            if isinstance(divisor, Number) and divisor.value != 0:
                quotient = left / right if divisor.value > 0 else -left / -right
            else:
                divisors.append(right)
                quotient = z3.If(right > 0, left / right, -left / -right)
            return quotient if expr.symbol == "//" else left - right * quotient
        return _OPERATORS[expr.symbol](left, right)

    def _root(self, of: Any) -> Any:
        """A new number that is the root, rounded down: there is exactly one, so it may be added beside any condition."""
        root, number = z3.FreshInt("root", self._context), z3.If(of >= 0, of, 0)
        self._solver.add(root >= 0, root * root <= number, number < (root + 1) * (root + 1))
        return root


def _smaller(one: Any, two: Any) -> Any:
    return z3.If(one <= two, one, two)


def _larger(one: Any, two: Any) -> Any:
    return z3.If(one >= two, one, two)


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
        """A point within the budget, and the wishes that it keeps: the last ones are lowered as far as needed."""
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
            self._session = Session(self._domain.names, PATIENCE, EFFORT)
            self._session.require(*self._domain.conditions())
            self._session.require(*(Compare("<=", Ref(name), Number(size)) for name, size in self._far.items()))
        return self._session
