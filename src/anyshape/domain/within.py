"""The shortest form of an expression under the rules of a domain.

    32*(h//32), (h + 31)//32*32     ->  h          where h % 32 == 0
    (h + 4)//8                      ->  h//8       where h % 32 == 0
    max(1, seq)                     ->  seq        where seq >= 1

The result has the value of the expression at every size of the domain. Elsewhere it may have another.
"""

from __future__ import annotations

from math import gcd

from anyshape.domain.condition import Compare, dims_of, substitute
from anyshape.domain.dims import Domain
from anyshape.domain.expr import Expr, Number, Op, Ref, format_expr
from anyshape.domain.polynomial import Monomial
from anyshape.domain.simplify import polynomial_of, simplify

_SOLVER_MS = 200


def simplify_within(expr: Expr, domain: Domain) -> Expr:
    """The shortest of the forms that the rules of the domain allow."""
    if any(name not in domain.names for name in dims_of(expr)):
        return expr
    return min((expr, simplify(_rewrite(expr, domain))), key=_length)


def _rewrite(expr: Expr, domain: Domain) -> Expr:
    if not isinstance(expr, Op):
        return expr
    expr = Op(expr.symbol, tuple(_rewrite(arg, domain) for arg in expr.args))
    if expr.symbol in ("min", "max"):
        expr = _without_beaten(expr, domain)
    return min((expr, _in_steps(expr, domain)), key=_length)


def _length(expr: Expr) -> tuple[int, int]:
    """How many operations, then how many characters."""
    return _operations(expr), len(format_expr(expr))


def _operations(expr: Expr) -> int:
    return 1 + sum(map(_operations, expr.args)) if isinstance(expr, Op) else 0


def _in_steps(expr: Expr, domain: Domain) -> Expr:
    """Each dim counted in its steps, which may divide evenly: (32*k + 4)//8  ->  4*k  ->  h//8."""
    steps = {name: domain.dim(name).multiple for name in dims_of(expr) if domain.dim(name).multiple > 1}
    if not steps:
        return expr
    counted = polynomial_of(substitute(expr, {name: step * Ref(name) for name, step in steps.items()}))
    if any(not isinstance(atom, Ref) for monomial in counted.terms for atom in monomial):
        return expr
    total: Expr = Number(0)
    for monomial, factor in counted.terms.items():
        product = _in_sizes(monomial, factor, steps)
        if _is_division(product) and sum(isinstance(atom, Ref) and atom.name in steps for atom in monomial) > 1:
            return expr  # h//4*(w//4) says more than h*(w//16)
        total = total + product
    return simplify(total)


def _is_division(expr: Expr) -> bool:
    return isinstance(expr, Op) and (expr.symbol == "//" or any(map(_is_division, expr.args)))


def _in_sizes(monomial: Monomial, factor: int, steps: dict[str, int]) -> Expr:
    """factor*k with h == step*k  ->  factor/s * (h//(step/s)), s what factor and step share."""
    product: Expr = Number(1)
    for atom in monomial:
        assert isinstance(atom, Ref)
        step = steps.get(atom.name, 1)
        shared = gcd(factor, step)
        factor //= shared
        product = product * (atom if step == shared else Op("//", (atom, Number(step // shared))))
    return Number(factor) * product


def _without_beaten(expr: Op, domain: Domain) -> Expr:
    """min or max without the arguments that are never the result alone."""
    from anyshape.domain.solver_questions import decide  # loads the solver

    order = "<=" if expr.symbol == "min" else ">="
    kept = list(expr.args)
    for arg in expr.args:
        others = [other for other in kept if other is not arg]
        if any(decide(domain, Compare(order, other, arg), timeout_ms=_SOLVER_MS).proved for other in others):
            kept = others
    return kept[0] if len(kept) == 1 else Op(expr.symbol, tuple(kept))
