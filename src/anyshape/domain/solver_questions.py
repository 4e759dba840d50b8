"""Questions about a domain: is it empty, does it imply this, a point in it, the range of a value, the shortest form of
an expression.

Each has a limit of z3's steps as a whole, and on request one for each check: the same on every machine. What z3 cannot
tell is tried point by point if the points are few, and is reported as unknown otherwise; no result is a guess.

    32*(h//32), (h + 31)//32*32     ->  h          where h % 32 == 0
    (h + 4)//8                      ->  h//8       where h % 32 == 0
    max(1, seq)                     ->  seq        where seq >= 1

The result has the value of the expression at every size of the domain. Elsewhere it may have another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import mul
from typing import Literal

from anyshape.domain.bound import Decision, Range, Truth, Undecided, wrong_point
from anyshape.domain.condition import Compare, Condition, dims_of, negate, substitute
from anyshape.domain.dims import Domain, Point, all_points, corners, fits, is_small
from anyshape.domain.expr import Expr, Number, Op, Ref, evaluate, format_expr
from anyshape.domain.simplify import equal_factors, in_steps, is_identity, open_divisors, polynomial_of, simplify
from anyshape.domain.solve import A_SECOND, Session
from anyshape.findings import InternalError

STEPS = 2 * A_SECOND
ENDLESS = 2**62  # no tensor has such a size: what can be larger has no end
_FEW_STEPS = A_SECOND // 5


def is_empty(domain: Domain, *, steps: int = STEPS) -> Truth:
    """Whether no sizes at all keep the domain's rules."""
    try:
        return Truth.YES if find_point(domain, steps=steps) is None else Truth.NO
    except Undecided:
        return Truth.UNKNOWN


def find_point(domain: Domain, *conditions: Condition, steps: int = STEPS, each: int | None = None) -> Point | None:
    """Sizes in the domain at which the conditions hold, None if there are none; Undecided if z3 cannot decide."""
    for corner in corners(domain):
        if fits(domain, conditions, corner):
            return corner
    try:
        return _Search(domain, conditions, steps, each).find()
    except Undecided:
        if not is_small(domain):
            raise
        return next(all_points(domain, *conditions), None)


def smallest_point(domain: Domain, *conditions: Condition, steps: int = STEPS, each: int | None = None) -> Point | None:
    """Of all such sizes those with the smallest sum, and of these the first in the order of the dims.

    None if there are none; Undecided if z3 cannot decide, or cannot prove that there are no smaller ones.
    """
    smallest = corners(domain)[0]
    if fits(domain, conditions, smallest):
        return smallest
    try:
        search = _Search(domain, conditions, steps, each)
        return search.shrink() if search.find() is not None else None
    except Undecided:
        if not is_small(domain):
            raise
        return min(all_points(domain, *conditions), key=_size_order, default=None)


def smallest_known_point(
    domain: Domain, *conditions: Condition, steps: int = STEPS, each: int | None = None
) -> Point | None:
    """`smallest_point`, but None also where z3 cannot decide: None proves nothing."""
    try:
        return smallest_point(domain, *conditions, steps=steps, each=each)
    except Undecided:
        return None


def decide(domain: Domain, condition: Condition, *, steps: int = STEPS) -> Decision:
    """Whether the condition holds on all of the domain (on an empty one it does).

    The counterexample is the smallest one; if the steps end while it is shrunk, the smallest that was seen.
    """
    opposite = negate(condition)
    smallest = corners(domain)[0]
    if fits(domain, (opposite,), smallest):
        return Decision("refuted", smallest)
    if is_identity(condition) and all(_is_never_zero(domain, divisor) for divisor in open_divisors(condition)):
        return Decision("proved")
    factors = equal_factors(condition)
    if factors and all(decide(domain, each, steps=steps).proved for each in factors):
        return Decision("proved")
    search = _Search(domain, (opposite,), steps)
    try:
        return Decision("refuted", search.shrink()) if search.find() is not None else Decision("proved")
    except Undecided:
        if is_small(domain):
            point = min(all_points(domain, opposite), key=_size_order, default=None)
            return Decision("refuted", point) if point is not None else Decision("proved")
        return Decision("refuted", search.best) if search.best is not None else Decision("unknown")


def _is_never_zero(domain: Domain, expr: Expr) -> bool:
    return decide(domain, Compare("!=", expr, Number(0))).proved


def range_of(domain: Domain, expr: Expr, *, steps: int = STEPS, each: int | None = None) -> Range | None:
    """The smallest and the largest value at the sizes where the expression has one; None if there are no such sizes."""
    has_value = Compare("==", expr, expr)
    search = _Search(domain, (has_value,), steps, each)
    try:
        if search.find() is None:
            return None
        low, high = search.highest(Number(0) - expr), search.highest(expr)
        found = Range(-low if isinstance(low, int) else low, high)
    except Undecided:
        found = Range(Truth.UNKNOWN, Truth.UNKNOWN)
    if Truth.UNKNOWN not in found or not is_small(domain):
        return found
    values = [evaluate(expr, sizes) for sizes in all_points(domain, has_value)]
    return Range(min(values), max(values)) if values else None


def find_contradiction(domain: Domain, *, steps: int = STEPS) -> tuple[Condition, ...]:
    """Rules of the domain that cannot hold together, none of them to spare; () if none are found within the steps."""
    session = Session(domain.names, steps)
    core: list[Condition] | None = None
    try:
        core = session.find_core(domain.conditions())
        for rule in core or ():
            rest = [other for other in core or () if other != rule]
            core = session.find_core(rest) or core
    except Undecided:
        pass  # what was found until then is a contradiction, if not the shortest
    return tuple(core or ())


class _Search:
    """One domain and some conditions before the solver, and the points that it gave so far.

    Only the dims that a relation or a condition mentions go to the solver; the others keep their smallest size.
    """

    def __init__(self, domain: Domain, conditions: tuple[Condition, ...], steps: int, each: int | None = None) -> None:
        self.domain, self.conditions = domain, conditions
        self.best: Point | None = None
        spoken_of = {name for term in (*domain.relations, *conditions) for name in dims_of(term)}
        self.involved = tuple(dim for dim in domain.dims if dim.name in spoken_of)
        self.session = Session([dim.name for dim in self.involved], steps, each)
        self.session.require(*Domain(self.involved, domain.relations).conditions(), *conditions)

    def find(self, *conditions: Condition) -> Point | None:
        """A point at which these conditions hold as well."""
        found = self.session.find(*conditions)
        if found is None:
            return None
        sizes = {dim.name: found.get(dim.name, dim.smallest) for dim in self.domain.dims}
        if not fits(self.domain, (*self.conditions, *conditions), sizes):
            raise InternalError(wrong_point(self.domain.conditions(), sizes))
        self.best = sizes if self.best is None else min(self.best, sizes, key=_size_order)
        return sizes

    def shrink(self) -> Point:
        """The smallest point, down from the best so far; nothing else can be asked afterwards."""
        sum_of_sizes: Expr = Number(0)
        for dim in self.involved:
            sum_of_sizes = sum_of_sizes + Ref(dim.name)
        self._lower(sum_of_sizes, sum(dim.smallest for dim in self.involved))
        for dim in self.involved[:-1]:  # the sum and the others leave no choice for the last
            self._lower(Ref(dim.name), dim.smallest)
        assert self.best is not None
        return self.best

    def _lower(self, expr: Expr, low: int) -> None:
        """Bring the best point to the smallest value, which is not below `low`, and keep it there.

        The smallest value is most often close to its lower end, so the steps start there and grow.
        """
        assert self.best is not None
        high, step = evaluate(expr, self.best), 0
        while low < high:
            guess = min(low + step, (low + high) // 2)
            point = self.find(Compare("<=", expr, Number(guess)))
            if point is None:
                low, step = guess + 1, 2 * step + 1
            else:
                self.best, high = point, evaluate(expr, point)
        self.session.require(Compare("==", expr, Number(high)))

    def highest(self, expr: Expr) -> int | Literal[Truth.UNKNOWN] | None:
        """The largest value, None if there is no end to it."""
        known = [self.best, *(corner for corner in corners(self.domain) if fits(self.domain, self.conditions, corner))]
        low = max(evaluate(expr, sizes) for sizes in known if sizes is not None)
        high, step = ENDLESS, 1
        try:
            if self.find(Compare(">", expr, Number(ENDLESS))) is not None:
                return None
            while low < high:
                guess = min(low + step, (low + high + 1) // 2)
                point = self.find(Compare(">=", expr, Number(guess)))
                if point is None:
                    high = guess - 1
                else:
                    low, step = evaluate(expr, point), 2 * step
        except Undecided:
            return Truth.UNKNOWN
        return low


def _size_order(sizes: Point) -> tuple[int, tuple[int, ...]]:
    return sum(sizes.values()), tuple(sizes.values())


def simplify_within(expr: Expr, domain: Domain) -> Expr:
    """The shortest of the forms that the rules of the domain allow."""
    if any(name not in domain.names for name in dims_of(expr)):
        return expr
    return min((expr, simplify(_rewrite(expr, domain))), key=_length)


def divide_multiples(condition: Condition, domain: Domain) -> Condition:
    """`min(h, w) > 8` for `min(4*(h//4), 4*(w//4)) > 8` where both are multiples of 4, without a question to the solver."""
    if not isinstance(condition, Compare) or not set(dims_of(condition)) <= set(domain.names):
        return condition
    if all(dim.multiple == 1 for dim in domain.dims):
        return condition
    left, right = (_rewrite(side, domain, asks=False) for side in (condition.left, condition.right))
    return Compare(condition.op, left, right)


def _rewrite(expr: Expr, domain: Domain, *, asks: bool = True) -> Expr:
    if not isinstance(expr, Op):
        return expr
    steps = {name: domain.dim(name).multiple for name in dims_of(expr) if domain.dim(name).multiple > 1}
    if (even := _in_equal_steps(expr, steps)) is not None:
        return even
    expr = Op(expr.symbol, tuple(_rewrite(arg, domain, asks=asks) for arg in expr.args))
    if asks and expr.symbol in ("min", "max"):
        expr = _without_beaten(expr, domain)
    return min((expr, in_steps(expr, steps)), key=_length)


def _in_equal_steps(expr: Op, steps: Mapping[str, int]) -> Expr | None:
    """16*(h//16)*(w//16)  ->  h//4*(w//4), where both are multiples of 16; None for what is no such product."""
    if expr.symbol != "*" or len(steps) < 2 or len(set(steps.values())) > 1:
        return None
    counted = polynomial_of(substitute(expr, {name: step * Ref(name) for name, step in steps.items()})).terms
    monomial, factor = next(iter(counted.items())) if len(counted) == 1 else ((), 0)
    step, root = max(steps.values()), round(max(0, factor) ** (1 / len(steps)))
    is_whole = root ** len(steps) == factor and 1 < root < step and step % root == 0
    if not is_whole or sorted(map(str, monomial)) != sorted(steps):
        return None
    return reduce(mul, [atom // (step // root) for atom in monomial])


def _length(expr: Expr) -> tuple[int, int]:
    """How many operations, then how many characters."""
    return _operations(expr), len(format_expr(expr))


def _operations(expr: Expr) -> int:
    return 1 + sum(map(_operations, expr.args)) if isinstance(expr, Op) else 0


def _without_beaten(expr: Op, domain: Domain) -> Expr:
    """min or max without the arguments that are never the result alone."""
    # loads the solver

    order = "<=" if expr.symbol == "min" else ">="
    kept = list(expr.args)
    for arg in expr.args:
        others = [other for other in kept if other is not arg]
        if any(decide(domain, Compare(order, other, arg), steps=_FEW_STEPS).proved for other in others):
            kept = others
    return kept[0] if len(kept) == 1 else Op(expr.symbol, tuple(kept))
