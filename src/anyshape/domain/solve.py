"""Conditions put to z3: the only module that imports it.

z3 divides as Euclid did, so `//` and `%` are encoded as Python has them; a comparison that divides by zero does not
hold, as in `holds`. A session has one limit for all of its checks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from time import monotonic
from typing import Any

import z3

from anyshape.domain.condition import All, AnyOf, Compare, Condition, Not, all_of, format_condition
from anyshape.domain.expr import ROOT, Expr, Number, Op, Ref
from anyshape.domain.solver_results import Undecided

_STEPS_A_MS = 5000  # of z3 on a quiet machine: 3500 to 8000, by the kind of question
_TIMES_SLOWER = 5  # so much longer a busy machine may take for the same steps
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


class Session:
    """A solver over non-negative sizes of these names that collects conditions; alike checks share their work.

    The limit is counted in z3's own steps, so that a busy machine decides what a quiet one does: those of `timeout_ms` on
    a quiet machine for all checks together, or `effort` for each. A clock ends what takes much longer.
    """

    def __init__(self, names: Sequence[str], timeout_ms: int, effort: int | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._deadline = monotonic() + timeout_ms * (_TIMES_SLOWER if effort is None else 1) / 1000
        self._effort = effort
        self._steps_left, self._steps_taken = timeout_ms * _STEPS_A_MS, 0
        # A context of its own: sessions in several threads do not meet, and no result depends on earlier questions.
        self._context = z3.Context()
        self._solver = z3.SimpleSolver(ctx=self._context)
        self._refs = {name: z3.Int(name, self._context) for name in names}
        self._required: list[Condition] = []
        self._solver.add([ref >= 0 for ref in self._refs.values()])

    def require(self, *conditions: Condition) -> None:
        """These hold from now on."""
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
        left_ms = int((self._deadline - monotonic()) * 1000)
        if left_ms > 0 and self._steps_left > 0:
            self._solver.set("timeout", left_ms)
            self._solver.set("rlimit", self._effort or self._steps_left)
            status = self._solver.check(*switches)
            self._count_steps()
            if status != z3.unknown:
                return status
        raise Undecided(format_condition(all_of([*self._required, *conditions])), self._timeout_ms)

    def _count_steps(self) -> None:
        if self._effort is None:
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
