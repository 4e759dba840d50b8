"""Dims that follow others: `w == h` in a domain leaves no point at which one of the two moves alone.

An axis is then asked as a function of the dims that are left free, and the tied ones move with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anyshape.domain import Compare, Domain, Expr, Op, Ref, Undefined, conjuncts, dims_of, evaluate, substitute

Point = dict[str, int]


@dataclass(frozen=True)
class Ties:
    """Each tied dim as an expression of free ones."""

    follows: Mapping[str, Expr]

    def complete(self, point: Mapping[str, int]) -> Point:
        """The point with every tied dim where its tie puts it."""
        completed = dict(point)
        for name, expr in self.follows.items():
            try:
                completed[name] = evaluate(expr, completed)
            except Undefined:
                completed[name] = -1  # in no domain
        return completed

    def name_both(self, expr: Expr) -> Expr:
        """`h*h`  ->  `h*w` where `w == h`: a dim that no axis names would be no dim at all."""
        for name, other in self.follows.items():
            if isinstance(other, Ref) and _count(expr, other.name) > 1:
                expr = _replace_last(expr, other.name, Ref(name))
        return expr


def find_ties(domain: Domain) -> Ties:
    """The equalities of the domain that give a dim in terms of others."""
    follows: dict[str, Expr] = {}
    for relation in domain.relations:
        for part in conjuncts(relation):
            name, expr = next(_solved(part, follows), (None, None)) if isinstance(part, Compare) else (None, None)
            if name is None or expr is None:
                continue
            follows = {known: substitute(other, {name: expr}) for known, other in follows.items()}
            follows[name] = expr
    return Ties(follows)


def _solved(part: Compare, follows: Mapping[str, Expr]) -> Iterator[tuple[str, Expr]]:
    """The later dim first: of `h == w` it is w that follows."""
    if part.op != "==":
        return
    for one, other in ((part.right, part.left), (part.left, part.right)):
        expr = substitute(other, follows)
        if isinstance(one, Ref) and one.name not in follows and dims_of(expr) and one.name not in dims_of(expr):
            yield one.name, expr


def _count(expr: Expr, name: str) -> int:
    if isinstance(expr, Ref):
        return int(expr.name == name)
    return sum(_count(arg, name) for arg in expr.args) if isinstance(expr, Op) else 0


def _replace_last(expr: Expr, name: str, by: Expr) -> Expr:
    if isinstance(expr, Ref):
        return by if expr.name == name else expr
    if not isinstance(expr, Op):
        return expr
    last = max((index for index, arg in enumerate(expr.args) if _count(arg, name)), default=None)
    args = [_replace_last(arg, name, by) if index == last else arg for index, arg in enumerate(expr.args)]
    return Op(expr.symbol, tuple(args))
