"""Bounds of integer expressions over a domain, as a machine that has finite memory and 64-bit integers needs them.

A dim without an upper end still has one: no tensor has more than `MOST_ELEMENTS` elements. The same holds for the product
of the sizes of every tensor of a program. Intervals are never too narrow; they may be too wide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from anyshape.domain.bound import Undecided
from anyshape.domain.condition import Compare, dims_of
from anyshape.domain.dims import Domain
from anyshape.domain.expr import ROOT, Expr, Number, Op, Ref, Undefined, apply, evaluate
from anyshape.domain.polynomial import Monomial, Polynomial
from anyshape.domain.simplify import polynomial_of

MOST_ELEMENTS = 2**48
INT64 = (-(2**63), 2**63 - 1)
_MOST_TERMS = 256
_SMALL_END = 2**20

Names = tuple[str, ...]
Interval = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """The smallest and the largest size of each dim, and upper ends of products of dims: `(("a", "b"), 100)` is a*b <= 100."""

    ends: Mapping[str, Interval]
    products: tuple[tuple[Names, int], ...] = ()

    def with_end(self, names: Iterable[str], high: int) -> Limits:
        """The limits with an end of `high` for these dims, or their own end where that is smaller."""
        ends = {name: (self.ends[name][0], min(self.ends[name][1], high)) for name in names}
        return replace(self, ends={**self.ends, **ends})

    def with_product(self, names: Names, high: int) -> Limits:
        return replace(self, products=(*self.products, (tuple(sorted(names)), high)))


def limits_of(domain: Domain, element_counts: Iterable[Expr] = ()) -> Limits:
    """The limits of a domain whose program makes tensors of so many elements."""
    counts = list(dict.fromkeys(element_counts))
    products = [pair for count in counts for pair in _products_of(polynomial_of(count), MOST_ELEMENTS)]
    for relation in domain.relations:
        if isinstance(relation, Compare) and relation.op in ("<=", "<"):
            difference = polynomial_of(relation.left - relation.right)
            products += _products_of(difference, 0 if relation.op == "<=" else -1)
    smallest = {dim.name: dim.smallest for dim in domain.dims}
    ends = {}
    for dim in domain.dims:
        high = dim.max if dim.max is not None else _end_in_memory(dim.name, smallest, counts)
        ends[dim.name] = (dim.smallest, max(high, dim.smallest))
    return Limits(_with_relations(domain, ends), tuple(dict.fromkeys(products)))


def _products_of(count: Polynomial, high: int) -> list[tuple[Names, int]]:
    """`factor*a*b + ... <= high`, all factors of products positive  ->  each product's own end."""
    varying = {monomial: factor for monomial, factor in count.terms.items() if monomial}
    if any(factor < 0 for factor in varying.values()):
        return []
    left = high - count.coefficient(())
    return [
        (tuple(sorted(atom.name for atom in monomial if isinstance(atom, Ref))), max(left // factor, 0))
        for monomial, factor in varying.items()
        if all(isinstance(atom, Ref) for atom in monomial)
    ]


def _end_in_memory(name: str, smallest: Mapping[str, int], counts: Iterable[Expr]) -> int:
    """The largest size of a dim at which every tensor fits, the other dims at their smallest, but at least 1."""
    others = {other: max(size, 1) for other, size in smallest.items()}
    about = [count for count in counts if name in dims_of(count) and set(dims_of(count)) <= set(smallest)]

    def fits(size: int) -> bool:
        try:
            return all(evaluate(count, {**others, name: size}) <= MOST_ELEMENTS for count in about)
        except Undefined:
            return True

    return largest_that(fits, smallest[name], MOST_ELEMENTS) or smallest[name]


def _with_relations(domain: Domain, ends: dict[str, Interval]) -> dict[str, Interval]:
    """Ends that relations give to single dims: `past + seq <= 4096` ends both."""
    from anyshape.domain.solve import EFFORT, PATIENCE  # these load z3
    from anyshape.domain.solver_questions import range_of

    for name in dict.fromkeys(name for relation in domain.relations for name in dims_of(relation)):
        try:
            found = range_of(domain, Ref(name), steps=PATIENCE, each=EFFORT)
        except Undecided:
            continue
        high = found.high if found is not None else None
        if isinstance(high, int):
            ends[name] = (ends[name][0], min(ends[name][1], high))
    return ends


def largest_that(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest number from low to high that fits, if all below one that fits do; None where not even low does."""
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def interval_of(expr: Expr, limits: Limits) -> Interval:
    """Ends between which the value lies wherever it exists; a name without limits is a size that some tensor has."""
    if isinstance(expr, Number):
        return expr.value, expr.value
    if isinstance(expr, Ref):
        return limits.ends.get(expr.name, (0, MOST_ELEMENTS))
    assert isinstance(expr, Op)
    plain = combine(expr.symbol, [interval_of(arg, limits) for arg in expr.args])
    if expr.symbol not in ("+", "-", "*"):
        return plain
    return meet(plain, polynomial_interval(polynomial_of(expr), limits))


def meet(one: Interval, two: Interval) -> Interval:
    low, high = max(one[0], two[0]), min(one[1], two[1])
    return (low, high) if low <= high else one


def polynomial_interval(polynomial: Polynomial, limits: Limits) -> Interval:
    """The sum of the intervals of its terms; the interval of a product of dims respects the known ends of products."""
    if len(polynomial.terms) > _MOST_TERMS:
        return -(2**200), 2**200
    low = high = 0
    for monomial, factor in polynomial.terms.items():
        ends = _monomial_interval(monomial, limits)
        low += min(factor * ends[0], factor * ends[1])
        high += max(factor * ends[0], factor * ends[1])
    return low, high


def _monomial_interval(monomial: Monomial, limits: Limits) -> Interval:
    atoms = [interval_of(atom, limits) for atom in monomial]
    if any(low < 0 for low, _ in atoms):
        result: Interval = (1, 1)
        for ends in atoms:
            result = combine("*", [result, ends])
        return result
    names = [atom.name for atom in monomial if isinstance(atom, Ref)]
    others = [ends for atom, ends in zip(monomial, atoms, strict=True) if not isinstance(atom, Ref)]
    high = prod(high for _, high in others) * _highest_product(names, limits)
    return prod(low for low, _ in atoms), min(high, _highest_with_parts(monomial, limits))


def _highest_with_parts(monomial: Monomial, limits: Limits) -> int:
    """The upper end of a product in which `h//4` counts as a quarter of h: the end of h*w ends `h//4*(w//4)`, too.

    `min(9, h)` counts as h, or as 9, whichever gives less.
    """
    return min(_product_of_parts(monomial, limits, small) for small in (0, _SMALL_END))


def _product_of_parts(monomial: Monomial, limits: Limits, small: int) -> int:
    """The bound of a product in which atoms that end at `small` or before count by their ends."""
    names: list[str] = []
    numerator = denominator = 1
    for atom in monomial:
        high = interval_of(atom, limits)[1]
        part = _part_of_dim(atom, limits) if high > small else None
        if part is None:
            numerator *= high
        else:
            names.append(part[0])
            numerator, denominator = numerator * part[1], denominator * part[2]
    return numerator * _highest_product(names, limits) // denominator


def _part_of_dim(atom: Expr, limits: Limits) -> tuple[str, int, int] | None:
    """A dim and p and q such that the atom is at most p/q of the dim; None where it is no part of one dim.

    `h//4` is a quarter of h; `max(0, h - min(9, h))` and `min(9, h)` are at most h.
    """
    if isinstance(atom, Ref):
        return atom.name, 1, 1
    if not isinstance(atom, Op):
        return None
    if atom.symbol == "min":
        return next((part for arg in atom.args if (part := _part_of_dim(arg, limits)) is not None), None)
    if atom.symbol == "max":
        return _largest_part([_part_of_dim(arg, limits) for arg in atom.args if interval_of(arg, limits)[1] > 0])
    if atom.symbol in ("+", "-", "*"):
        return _part_of_sum(polynomial_of(atom), limits)
    if atom.symbol != "//" or not isinstance(atom.args[1], Number):
        return None
    inner, divisor = polynomial_of(atom.args[0]), atom.args[1].value
    varying = [monomial for monomial in inner.terms if monomial]
    if divisor <= 0 or len(varying) != 1 or len(varying[0]) != 1 or not isinstance(varying[0][0], Ref):
        return None
    name, added = varying[0][0].name, max(inner.coefficient(()), 0)
    if added and limits.ends.get(name, (0, 0))[0] < 1:
        return None
    return name, inner.coefficient(varying[0]) + added, divisor


def _largest_part(parts: list[tuple[str, int, int] | None]) -> tuple[str, int, int] | None:
    """The largest of several parts of the same dim."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts) or len({name for name, _, _ in known}) > 1:
        return None
    return max(known, key=lambda part: Fraction(part[1], part[2]))


def _part_of_sum(total: Polynomial, limits: Limits) -> tuple[str, int, int] | None:
    """`3*h - rest` is at most 3*h, where the rest is not negative."""
    for monomial, factor in total.terms.items():
        if factor > 0 and len(monomial) == 1 and isinstance(monomial[0], Ref):
            rest = total - Polynomial({monomial: factor})
            return (monomial[0].name, factor, 1) if polynomial_interval(rest, limits)[1] <= 0 else None
    return None


def _highest_product(names: list[str], limits: Limits) -> int:
    """The upper end of a product of dims: product of the ends, or less where a product is known to end.

    The end of b*h*w, b at least 1, ends h*w, too.
    """
    best = prod(limits.ends.get(name, (0, MOST_ELEMENTS))[1] for name in names)
    for product, high in limits.products:
        wanted, known = Counter(names), Counter(product)
        least = prod(limits.ends.get(name, (0, 0))[0] for name in (known - wanted).elements())
        if wanted & known and least > 0:
            best = min(best, high // least * _highest_product(sorted((wanted - known).elements()), limits))
    return best


def combine(symbol: str, parts: list[Interval]) -> Interval:
    """One operation on intervals of integers."""
    if symbol in ("min", "max"):
        choose = min if symbol == "min" else max
        return choose(low for low, _ in parts), choose(high for _, high in parts)
    if symbol == ROOT:
        low, high = parts[0]
        return apply(ROOT, [low]), apply(ROOT, [high])
    (low, high), (other_low, other_high) = parts
    if symbol == "+":
        return low + other_low, high + other_high
    if symbol == "-":
        return low - other_high, high - other_low
    if symbol == "*":
        corners = [one * two for one in (low, high) for two in (other_low, other_high)]
        return min(corners), max(corners)
    divisors = [end for end in (other_low, other_high) if end]
    divisors += [1] if other_low <= 0 < other_high else []
    divisors += [-1] if other_low < 0 <= other_high else []
    if not divisors:
        return 0, 0  # it divides by zero everywhere: there is no value
    if symbol == "//":
        corners = [one // two for one in (low, high) for two in divisors]
        return min(corners), max(corners)
    most, least = max(divisors), min(divisors)
    if least > 0 and low >= 0 and high < least:
        return low, high
    return (min(least + 1, 0) if least < 0 else 0), (most - 1 if most > 0 else 0)
