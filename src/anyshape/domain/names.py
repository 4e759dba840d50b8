"""The dims that an expression or a condition speaks of, and others in their place.

Everything is rebuilt, nothing is simplified: `substitute` of `n` by `2` in `n + 1` is `2 + 1`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import overload

from anyshape.domain.condition import All, AnyOf, Compare, Condition, Not
from anyshape.domain.expr import Expr, Number, Op, Ref


def dims_of(term: Expr | Condition) -> tuple[str, ...]:
    """The names of the dims, in the order of their first appearance."""
    return tuple(dict.fromkeys(_names(term)))


def is_about(term: Expr | Condition, dims: Collection[str]) -> bool:
    """Whether it speaks of these dims alone; the counter of a loop is none of them."""
    return all(name in dims for name in _names(term))


def _names(term: Expr | Condition) -> Iterator[str]:
    if isinstance(term, Ref):
        yield term.name
    elif not isinstance(term, Number):
        for child in _children(term):
            yield from _names(child)


def _children(term: Expr | Condition) -> tuple[Expr | Condition, ...]:
    if isinstance(term, Op):
        return term.args
    if isinstance(term, Compare):
        return (term.left, term.right)
    if isinstance(term, (All, AnyOf)):
        return term.parts
    if isinstance(term, Not):
        return (term.part,)
    raise TypeError(f"neither an expression nor a condition: {term!r}")


@overload
def substitute(term: Expr, replacements: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(term: Condition, replacements: Mapping[str, Expr]) -> Condition: ...


def substitute(term: Expr | Condition, replacements: Mapping[str, Expr]) -> Expr | Condition:
    """The term with every dim that has a replacement replaced, all at once: `{a: b, b: a}` swaps."""
    if isinstance(term, Expr):
        return _substitute_in_expr(term, replacements)
    return _substitute_in_condition(term, replacements)


def _substitute_in_expr(expr: Expr, replacements: Mapping[str, Expr]) -> Expr:
    if isinstance(expr, Ref):
        return replacements.get(expr.name, expr)
    if isinstance(expr, Op):
        return Op(expr.symbol, tuple(_substitute_in_expr(arg, replacements) for arg in expr.args))
    return expr


def _substitute_in_condition(condition: Condition, replacements: Mapping[str, Expr]) -> Condition:
    if isinstance(condition, Compare):
        left = _substitute_in_expr(condition.left, replacements)
        return Compare(condition.op, left, _substitute_in_expr(condition.right, replacements))
    if isinstance(condition, (All, AnyOf)):
        return type(condition)(tuple(_substitute_in_condition(part, replacements) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(_substitute_in_condition(condition.part, replacements))
    raise TypeError(f"not a condition: {condition!r}")
