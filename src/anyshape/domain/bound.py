"""What a condition implies for one dim alone: its range and its multiple.

Only what is exactly a bound is read as one; `2*b <= 65` is `b <= 32`, `b != 3` and `b % 8 == 4` are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyshape.domain.condition import MIRRORED, Compare, Condition, Not, dims_of, may_be_undefined, negate
from anyshape.domain.expr import Number, Op, Ref
from anyshape.domain.simplify import polynomial_of


@dataclass(frozen=True)
class Bound:
    """Ends and multiple of one dim, each None where the condition does not mention it."""

    name: str
    min: int | None = None
    max: int | None = None
    multiple: int | None = None


def find_bound(condition: Condition) -> Bound | None:
    """The bound that the condition is, or None if it is something else."""
    if isinstance(condition, Not):
        condition = negate(condition.part)
    if not isinstance(condition, Compare) or len(dims_of(condition)) != 1:
        return None
    if may_be_undefined(condition.left) or may_be_undefined(condition.right):
        return None
    difference = polynomial_of(condition.left - condition.right)
    varying = [(monomial, factor) for monomial, factor in difference.terms.items() if monomial]
    if len(varying) != 1 or len(varying[0][0]) != 1:
        return None
    (atom,), factor = varying[0]
    number = difference.coefficient(())
    if isinstance(atom, Ref):
        return _range(atom.name, condition.op, factor, number)
    return _multiple(atom) if condition.op == "==" and number == 0 and isinstance(atom, Op) else None


def _range(name: str, op: str, factor: int, number: int) -> Bound | None:
    """The bound in `factor*name + number  op  0`."""
    if factor < 0:
        op, factor, number = MIRRORED[op], -factor, -number
    if op == "<=":
        return Bound(name, max=-number // factor)
    if op == "<":
        return Bound(name, max=(-number - 1) // factor)
    if op == ">=":
        return Bound(name, min=-(number // factor))
    if op == ">":
        return Bound(name, min=-number // factor + 1)
    if op == "==" and number % factor == 0:
        return Bound(name, min=-number // factor, max=-number // factor)
    return None


def _multiple(atom: Op) -> Bound | None:
    left, right = atom.args[0], atom.args[1]
    if atom.symbol == "%" and isinstance(left, Ref) and isinstance(right, Number):
        return Bound(left.name, multiple=right.value)
    return None
