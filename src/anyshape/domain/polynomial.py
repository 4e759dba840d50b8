"""Polynomials with integer coefficients over atoms: what `simplify` computes with.

A monomial is a sorted tuple of atoms, repeated for powers; `()` is the constant's. A coefficient is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from anyshape.domain.expr import Expr, Number, Ref

Monomial = tuple[Expr, ...]


@dataclass(frozen=True)
class Polynomial:
    """Coefficients by monomial."""

    terms: Mapping[Monomial, int]

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial({(): value} if value else {})

    @staticmethod
    def atom(expr: Expr) -> Polynomial:
        return Polynomial({(expr,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        return _collect([*self.terms.items(), *other.terms.items()])

    def __sub__(self, other: Polynomial) -> Polynomial:
        return _collect([*self.terms.items(), *((monomial, -factor) for monomial, factor in other.terms.items())])

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _collect(
            [
                (tuple(sorted(one + two, key=_rank)), one_factor * two_factor)
                for one, one_factor in self.terms.items()
                for two, two_factor in other.terms.items()
            ]
        )

    def coefficient(self, monomial: Monomial) -> int:
        return self.terms.get(monomial, 0)

    def as_constant(self) -> int | None:
        """The value, if it is the same at all sizes."""
        return None if any(self.terms) else self.coefficient(())

    def leading(self) -> tuple[Monomial, int]:
        """The first term in the order of printing; the polynomial must not be 0."""
        return min(self.terms.items(), key=lambda term: _order(term[0]))

    def split_by(self, divisor: int) -> tuple[Polynomial, Polynomial]:
        """q and r with self = divisor*q + r, every coefficient of r from 0 to below the divisor (which is positive)."""
        pairs = {monomial: divmod(factor, divisor) for monomial, factor in self.terms.items()}
        whole = _collect([(monomial, pair[0]) for monomial, pair in pairs.items()])
        return whole, _collect([(monomial, pair[1]) for monomial, pair in pairs.items()])

    def scaled_down(self, number: int) -> Polynomial:
        """Divided by a number that divides every coefficient."""
        return Polynomial({monomial: factor // number for monomial, factor in self.terms.items()})

    def common_factor(self, other: Polynomial) -> tuple[int, Monomial]:
        """The largest number and monomial that divide every term of both."""
        number = gcd(*self.terms.values(), *other.terms.values())
        shared: Monomial | None = None
        for monomial in (*self.terms, *other.terms):
            shared = monomial if shared is None else _intersection(shared, monomial)
        return number, shared or ()

    def without(self, atoms: Monomial, number: int) -> Polynomial:
        """Divided by a term that divides it."""
        result = {}
        for monomial, factor in self.terms.items():
            left = _difference(monomial, atoms)
            if left is None:
                raise ValueError(f"{atoms} does not divide {monomial}")
            result[left] = factor // number
        return Polynomial(result)

    def divided_by(self, divisor: Polynomial) -> Polynomial | None:
        """The quotient, if the divisor divides the polynomial without a rest."""
        leading, leading_factor = divisor.leading()
        quotient, rest = Polynomial({}), self
        while rest.terms:
            # In a monomial order the leading term of a multiple is a multiple of the leading term.
            monomial, factor = rest.leading()
            left = _difference(monomial, leading)
            if left is None or factor % leading_factor:
                return None
            step = Polynomial({left: factor // leading_factor})
            quotient, rest = quotient + step, rest - step * divisor
        return quotient

    def split_by_term(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """q and r with self = divisor*q + r, where r has the terms that a divisor of one term does not divide; q is 0 for
        another divisor."""
        if len(divisor.terms) != 1:
            return Polynomial({}), self
        (atoms, number), *_ = divisor.terms.items()
        whole: dict[Monomial, int] = {}
        for monomial, factor in self.terms.items():
            left = _difference(monomial, atoms)
            if left is not None and factor % number == 0:
                whole[left] = factor // number
        return Polynomial(whole), self - Polynomial(whole) * divisor

    def to_expr(self) -> Expr:
        """Terms of higher degree first, then by name; what is subtracted after what is added; the number last.

        Except that a number opens when everything else is subtracted: `32 - t`.
        """
        ordered = sorted(self.terms.items(), key=lambda term: _order(term[0]))
        varying = [term for term in ordered if term[0]]
        number = self.coefficient(())
        added = [term for term in varying if term[1] > 0]
        constant = [((), number)] if number else []
        front = [] if added or number < 0 else constant
        terms = [*added, *front, *(term for term in varying if term[1] < 0), *([] if front else constant)]
        if not terms:
            return Number(0)
        result = _term(*terms[0])
        for monomial, factor in terms[1:]:
            result = result + _term(monomial, factor) if factor > 0 else result - _term(monomial, -factor)
        return result


def _term(monomial: Monomial, factor: int) -> Expr:
    if not monomial:
        return Number(factor)
    result = monomial[0] if factor == 1 else factor * monomial[0]
    for atom in monomial[1:]:
        result = result * atom
    return result


def _collect(terms: list[tuple[Monomial, int]]) -> Polynomial:
    collected: dict[Monomial, int] = {}
    for monomial, factor in terms:
        collected[monomial] = collected.get(monomial, 0) + factor
    return Polynomial({monomial: factor for monomial, factor in collected.items() if factor})


def _rank(atom: Expr) -> tuple[bool, str]:
    """Dims by name, then operations by their text."""
    return not isinstance(atom, Ref), str(atom)


def _order(monomial: Monomial) -> tuple[int, list[tuple[bool, str]]]:
    return -len(monomial), [_rank(atom) for atom in monomial]


def _intersection(one: Monomial, two: Monomial) -> Monomial:
    rest = list(two)
    shared = []
    for atom in one:
        if atom in rest:
            rest.remove(atom)
            shared.append(atom)
    return tuple(shared)


def _difference(monomial: Monomial, removed: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in removed:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
