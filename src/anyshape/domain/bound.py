"""What follows from conditions: the range and multiple of one dim, and the solver's results (Truth, Decision, Range,
Undecided).

Only what is exactly a bound is read as one; `2*b <= 65` is `b <= 32`, `b != 3` and `b % 8 == 4` are none.

`find_point` and `smallest_point` return None only when there is no point; not knowing raises `Undecided`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from anyshape.domain.condition import (
    MIRRORED,
    Compare,
    Condition,
    Not,
    dims_of,
    format_condition,
    may_be_undefined,
    negate,
)
from anyshape.domain.expr import Number, Op, Ref
from anyshape.domain.simplify import polynomial_of
from anyshape.findings import AnyshapeError, Finding


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


class Truth(Enum):
    """Yes, no or unknown. Not a bool: compare with `is`."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a Truth can be UNKNOWN: write `is Truth.YES` or `is Truth.NO`")


@dataclass(frozen=True)
class Decision:
    """Whether a domain implies a condition; if it does not, the smallest sizes at which the condition fails."""

    status: Literal["proved", "refuted", "unknown"]
    counterexample: dict[str, int] | None = None

    @property
    def proved(self) -> bool:
        return self.status == "proved"


class Range(NamedTuple):
    """The smallest and the largest value; None where there is no end, Truth.UNKNOWN where the solver cannot decide."""

    low: int | Literal[Truth.UNKNOWN] | None
    high: int | Literal[Truth.UNKNOWN] | None


class Undecided(AnyshapeError):
    """The solver did not decide within its steps."""

    def __init__(self, question: str, steps: int) -> None:
        self.question = question
        self.steps = steps
        super().__init__(
            Finding(
                code="AS008",
                name="undecided",
                what="the solver could not decide within its limit whether sizes exist.",
                why=f"asked for {steps:,} steps: {question}",
                fix="give the dims upper ends, or write products and divisions of dims in a simpler way.",
            )
        )

    def __reduce__(self) -> tuple[type[Undecided], tuple[str, int]]:
        return type(self), (self.question, self.steps)


def wrong_point(rules: Iterable[Condition], sizes: Mapping[str, int]) -> Finding:
    """The finding for sizes from the solver that do not keep the rules it was given: our own fault."""
    return Finding(
        code="AS902",
        name="solver-disagrees",
        what="the solver gave sizes that do not keep the rules it was asked about.",
        why=f"{dict(sizes)} under {', '.join(map(format_condition, rules))}",
        fix="this is our fault, sorry: please report the rules above.",
        sizes=dict(sizes),
    )
