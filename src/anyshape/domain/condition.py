"""Conditions on sizes: comparisons of expressions, joined by and, or and not; which dims they have, and substitution.

A comparison that divides by zero at some sizes does not hold there, and its `Not` does: a condition is always either
true or false, and `negate` is its exact opposite.

Everything is rebuilt, nothing is simplified: `substitute` of `n` by `2` in `n + 1` is `2 + 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

from anyshape.domain.expr import Expr, Number, Op, Ref, Undefined, evaluate, format_expr

OPPOSITE = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">=": "<", ">": "<="}
MIRRORED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<"}
_OR, _AND, _NOT, _COMPARE = 1, 2, 3, 4


class Condition:
    """Base of Compare, All, AnyOf and Not."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_condition(self)


def _check_parts(parts: tuple[Condition, ...], builder: str) -> None:
    # One part has no text of its own ("a" reads back as a), so format and parse would not be inverses.
    if len(parts) == 1:
        raise ValueError(f"one part stands for itself: build with {builder}(...)")


@dataclass(frozen=True)
class Compare(Condition):
    """`left op right`, where op is one of < <= == != >= >."""

    op: str
    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        if self.op not in OPPOSITE:
            raise ValueError(f"unknown comparison {self.op!r}")

    __str__ = Condition.__str__


@dataclass(frozen=True)
class All(Condition):
    """All parts hold. Build it with `all_of`, which handles one part; no parts at all are TRUE."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts, "all_of")

    __str__ = Condition.__str__


@dataclass(frozen=True)
class AnyOf(Condition):
    """At least one part holds. Build it with `any_of`; no parts at all are FALSE."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts, "any_of")

    __str__ = Condition.__str__


@dataclass(frozen=True)
class Not(Condition):
    """The part does not hold."""

    part: Condition

    __str__ = Condition.__str__


TRUE = All(())
FALSE = AnyOf(())


def all_of(conditions: Iterable[Condition]) -> Condition:
    """The conjunction, flat: nested All are opened, a single condition stays itself."""
    parts = tuple(dict.fromkeys(part for condition in conditions for part in conjuncts(condition)))
    return parts[0] if len(parts) == 1 else All(parts)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """The disjunction, flat: nested AnyOf are opened, a single condition stays itself."""
    opened: dict[Condition, None] = {}
    for condition in conditions:
        opened.update(dict.fromkeys(condition.parts if isinstance(condition, AnyOf) else (condition,)))
    parts = tuple(opened)
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that hold together exactly where this one does: an All is opened, all the way down."""
    if isinstance(condition, All):
        return tuple(inner for part in condition.parts for inner in conjuncts(part))
    return (condition,)


def holds(condition: Condition, sizes: Mapping[str, int]) -> bool:
    """Whether the condition is true at these sizes; a comparison without a value does not hold."""
    if isinstance(condition, Compare):
        try:
            left, right = evaluate(condition.left, sizes), evaluate(condition.right, sizes)
        except Undefined:
            return False
        return compare_numbers(condition.op, left, right)
    if isinstance(condition, All):
        return all(holds(part, sizes) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any(holds(part, sizes) for part in condition.parts)
    if isinstance(condition, Not):
        return not holds(condition.part, sizes)
    raise TypeError(f"not a condition: {condition!r}")


def compare_numbers(op: str, left: int, right: int) -> bool:
    """The comparison of two integers."""
    if op in ("==", "!="):
        return (left == right) is (op == "==")
    if op in ("<", ">="):
        return (left < right) is (op == "<")
    return (left <= right) is (op == "<=")


def negate(condition: Condition) -> Condition:
    """The exact opposite, with `not` pushed inwards as far as the meaning allows."""
    if isinstance(condition, Compare):
        if may_be_undefined(condition.left) or may_be_undefined(condition.right):
            return Not(condition)  # the opposite comparison would not hold either where there is no value
        return Compare(OPPOSITE[condition.op], condition.left, condition.right)
    if isinstance(condition, All):
        return AnyOf(tuple(negate(part) for part in condition.parts))
    if isinstance(condition, AnyOf):
        return All(tuple(negate(part) for part in condition.parts))
    if isinstance(condition, Not):
        return condition.part
    raise TypeError(f"not a condition: {condition!r}")


def may_be_undefined(expr: Expr) -> bool:
    """Whether the expression divides by something that is not a number other than 0."""
    if not isinstance(expr, Op):
        return False
    divisor = expr.args[1] if expr.symbol in ("//", "%") else None
    divides = divisor is not None and not (isinstance(divisor, Number) and divisor.value != 0)
    return divides or any(may_be_undefined(arg) for arg in expr.args)


def format_condition(condition: Condition) -> str:
    """As Python writes it: `1 <= batch <= 64`, `h % 32 == 0 and w >= h`, `not a == b`, `True`."""
    return _text(condition)[0]


def _text(condition: Condition) -> tuple[str, int]:
    if isinstance(condition, Compare):
        return f"{format_expr(condition.left)} {condition.op} {format_expr(condition.right)}", _COMPARE
    if isinstance(condition, Not):
        return f"not {_joined((condition.part,), '', _NOT)}", _NOT
    if not isinstance(condition, (All, AnyOf)):
        raise TypeError(f"not a condition: {condition!r}")
    if not condition.parts:
        return str(isinstance(condition, All)), _COMPARE
    if isinstance(condition, AnyOf):
        return _joined(condition.parts, " or ", _AND), _OR
    chain = _chain(condition.parts)
    return (chain, _COMPARE) if chain else (_joined(condition.parts, " and ", _NOT), _AND)


def _joined(parts: tuple[Condition, ...], word: str, needed: int) -> str:
    texts = [_text(part) for part in parts]
    return word.join(text if strength >= needed else f"({text})" for text, strength in texts)


def _chain(parts: tuple[Condition, ...]) -> str:
    """`a <= b < c` where every comparison goes on from the last and in the same direction, else nothing."""
    compares = [part for part in parts if isinstance(part, Compare)]
    directions = {compare.op[0] for compare in compares}
    linked = all(one.right == two.left for one, two in pairwise(compares))
    if len(compares) != len(parts) or not linked or directions not in ({"<"}, {">"}):
        return ""
    first = f"{format_expr(compares[0].left)} {compares[0].op} {format_expr(compares[0].right)}"
    return first + "".join(f" {compare.op} {format_expr(compare.right)}" for compare in compares[1:])


def is_always(condition: Condition) -> bool:
    """Whether the condition is a comparison of something with itself: true whatever the sizes."""
    from anyshape.domain.simplify import simplify  # builds on this module

    if not isinstance(condition, Compare) or condition.op not in ("==", "<=", ">="):
        return False
    return simplify(condition.left) == simplify(condition.right)


def comparisons_in(condition: Condition) -> Iterator[Compare]:
    """The comparisons that a condition is made of."""
    if isinstance(condition, Compare):
        yield condition
    elif isinstance(condition, Not):
        yield from comparisons_in(condition.part)
    elif isinstance(condition, (All, AnyOf)):
        for part in condition.parts:
            yield from comparisons_in(part)


def dims_of(term: Expr | Condition) -> tuple[str, ...]:
    """The names of the dims, in the order of their first appearance."""
    return tuple(dict.fromkeys(_names(term)))


def is_about(term: Expr | Condition, dims: Collection[str]) -> bool:
    """Whether the term mentions these dims alone; the counter of a loop is none of them."""
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
def rewritten(term: Expr, change: Callable[[Expr], Expr | None]) -> Expr: ...
@overload
def rewritten(term: Condition, change: Callable[[Expr], Expr | None]) -> Condition: ...


def rewritten(term: Expr | Condition, change: Callable[[Expr], Expr | None]) -> Expr | Condition:
    """The term with every expression that `change` gives another one for replaced by that one, the outermost first."""
    if isinstance(term, Expr):
        return _rewritten_expr(term, change)
    return _rewritten_condition(term, change)


def _rewritten_expr(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    if (changed := change(expr)) is not None:
        return changed
    if isinstance(expr, Op):
        return Op(expr.symbol, tuple(_rewritten_expr(arg, change) for arg in expr.args))
    return expr


def _rewritten_condition(condition: Condition, change: Callable[[Expr], Expr | None]) -> Condition:
    if isinstance(condition, Compare):
        left = _rewritten_expr(condition.left, change)
        return Compare(condition.op, left, _rewritten_expr(condition.right, change))
    if isinstance(condition, (All, AnyOf)):
        return type(condition)(tuple(_rewritten_condition(part, change) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(_rewritten_condition(condition.part, change))
    raise TypeError(f"not a condition: {condition!r}")


@overload
def substitute(term: Expr, replacements: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(term: Condition, replacements: Mapping[str, Expr]) -> Condition: ...


def substitute(term: Expr | Condition, replacements: Mapping[str, Expr]) -> Expr | Condition:
    """The term with every dim that has a replacement replaced, all at once: `{a: b, b: a}` swaps."""
    return rewritten(term, lambda expr: replacements.get(expr.name) if isinstance(expr, Ref) else None)
