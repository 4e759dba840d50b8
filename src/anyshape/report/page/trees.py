"""Expressions and conditions as JSON, for the arithmetic of the page (`assets/arithmetic.js`).

A number is a text (`"64"`), since JSON has no large integers; everything else is a list: `["dim", "seq"]`, `["//", a, b]`,
`["<=", a, b]`, `["all", c, ...]`, `["any", c, ...]`, `["not", c]`.
"""

from __future__ import annotations

from typing import Any

from anyshape.domain import Condition, Expr
from anyshape.domain.condition import All, AnyOf, Compare, Not
from anyshape.domain.expr import Number, Op, Ref

Tree = str | list[Any]


def expr_tree(expr: Expr) -> Tree:
    """The expression as JSON."""
    if isinstance(expr, Number):
        return str(expr.value)
    if isinstance(expr, Ref):
        return ["dim", expr.name]
    if isinstance(expr, Op):
        return [expr.symbol, *map(expr_tree, expr.args)]
    raise TypeError(f"not an expression: {expr!r}")


def condition_tree(condition: Condition) -> Tree:
    """The condition as JSON."""
    if isinstance(condition, Compare):
        return [condition.op, expr_tree(condition.left), expr_tree(condition.right)]
    if isinstance(condition, (All, AnyOf)):
        return ["all" if isinstance(condition, All) else "any", *map(condition_tree, condition.parts)]
    if isinstance(condition, Not):
        return ["not", condition_tree(condition.part)]
    raise TypeError(f"not a condition: {condition!r}")
