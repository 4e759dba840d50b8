"""torch's sympy expressions over size symbols -> our expressions and conditions over the user's dims.

What cannot be said in integer arithmetic (true division, square roots, sizes that depend on values) gives None: the
caller keeps the text and treats the condition as unknown, never as true.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from anyshape.domain import FALSE, TRUE, Compare, Condition, Expr, Not, Number, Op, all_of, any_of, simplify

_COMPARISONS = {
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
_DIVISIONS = {"FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%"}


class _Untranslatable(Exception):
    """A term that integer arithmetic over the dims cannot say."""


def expression_of(term: Any, symbols: Mapping[str, Expr]) -> Expr | None:
    """The term in the user's dims, simplified; None when it cannot be said."""
    try:
        return simplify(_expression(term, symbols))
    except _Untranslatable:
        return None


def condition_of(term: Any, symbols: Mapping[str, Expr]) -> Condition | None:
    """The condition in the user's dims; None when it cannot be said."""
    try:
        return _condition(term, symbols)
    except _Untranslatable:
        return None


def _expression(term: Any, symbols: Mapping[str, Expr]) -> Expr:
    if isinstance(term, int) or term.is_Integer:
        return Number(int(term))
    if term.is_Symbol:
        if term.name not in symbols:
            raise _Untranslatable(term.name)
        return symbols[term.name]
    name = type(term).__name__
    if term.is_Pow and term.exp.is_Integer and int(term.exp) > 0:
        base = _expression(term.base, symbols)
        return reduce(lambda product, _: product * base, range(int(term.exp) - 1), base)
    parts = [_expression(argument, symbols) for argument in term.args]
    if term.is_Add:
        return reduce(lambda left, right: left + right, parts)
    if term.is_Mul:
        return reduce(lambda left, right: left * right, parts)
    if name in _DIVISIONS:
        return Op(_DIVISIONS[name], tuple(parts))
    if name == "CeilDiv":
        return -(-parts[0] // parts[1])
    if name in ("Max", "Min"):
        return Op(name.lower(), tuple(parts))
    raise _Untranslatable(name)


def _condition(term: Any, symbols: Mapping[str, Expr]) -> Condition:
    name = type(term).__name__
    if name == "BooleanTrue":
        return TRUE
    if name == "BooleanFalse":
        return FALSE
    if name in _COMPARISONS:
        left, right = (_expression(side, symbols) for side in term.args)
        return Compare(_COMPARISONS[name], left, right)
    if name == "And":
        return all_of(_condition(part, symbols) for part in term.args)
    if name == "Or":
        return any_of(_condition(part, symbols) for part in term.args)
    if name == "Not":
        return Not(_condition(term.args[0], symbols))
    raise _Untranslatable(name)
