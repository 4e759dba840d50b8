"""The kinds of rules that can describe where a module answers, in tiers from simple to complex.

Every candidate holds at all answered points. Which of them are needed, and whether they are true, is decided in `rules`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import gcd

from anyshape.domain import ROOT, Compare, Condition, Expr, Number, Op, Ref, Sizes, any_of, evaluate, holds

LARGEST_MULTIPLE = 128
_MOST_IN_UNIONS = 24


def candidate_tiers(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[list[Condition]]:
    """Lists of candidates, each tier with those before it: one dim alone, two dims, sums and products, exceptions."""
    found: list[Condition] = []
    for tier in (_of_one_dim, _of_two_dims, _of_sums_and_products, _of_exceptions):
        fresh = [rule for rule in tier(answered, refused) if all(holds(rule, sizes) for sizes in answered)]
        found = list(dict.fromkeys([*found, *fresh]))
        yield found
    yield list(dict.fromkeys([*found, *_unions(answered, refused)]))


def complexity(rule: Condition) -> int:
    """How long the rule is to read; of two rules that explain the same, the shorter one is taken."""
    return len(str(rule))


def multiples_of(values: Sequence[int]) -> list[tuple[int, int]]:
    """All (m, r) such that every value leaves the remainder r when divided by m, for m from 2 to LARGEST_MULTIPLE."""
    step = 0
    for value in values:
        step = gcd(step, abs(value - values[0]))
    if step == 0:  # one value alone: it is a multiple of whatever divides it
        return [(m, 0) for m in range(2, min(values[0], LARGEST_MULTIPLE) + 1) if values[0] % m == 0] if values else []
    return [(m, values[0] % m) for m in range(2, min(step, LARGEST_MULTIPLE) + 1) if step % m == 0]


def _of_one_dim(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    for name in _names(answered):
        seen = [sizes[name] for sizes in answered]
        yield from _bounds(Ref(name), answered, refused)
        different = sorted(set(seen))
        if len(different) == 2 and different[0] == 1:  # a table of one size, which 1 broadcasts against
            yield any_of([Compare("==", Ref(name), Number(different[1])), Compare("==", Ref(name), Number(1))])
            continue
        for multiple, rest in multiples_of(seen):
            yield Compare("==", Ref(name) % multiple, Number(rest))


def _of_two_dims(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    names = _names(answered)
    one = Number(1)
    for left, right in itertools.combinations(names, 2):
        equal = Compare("==", Ref(left), Ref(right))
        yield equal
        yield any_of([equal, Compare("==", Ref(left), one), Compare("==", Ref(right), one)])
    for left, right in itertools.permutations(names, 2):
        yield Compare("<=", Ref(left), Ref(right))
        yield Compare("<", Ref(left), Ref(right))
        yield any_of([Compare("==", Ref(left), Ref(right)), Compare("==", Ref(left), one)])
        yield Compare("==", Ref(left) % Ref(right), Number(0))
        yield from _proportional(left, right, answered)
    for name in names:
        sizes = sorted({point[name] for point in answered})
        if len(sizes) == 1:
            yield Compare("==", Ref(name), Number(sizes[0]))


def _proportional(left: str, right: str, answered: Sequence[Sizes]) -> Iterator[Condition]:
    """`left == factor*right + offset`, where two answered points give the factor and the offset."""
    pairs = sorted({(point[right], point[left]) for point in answered})
    if len(pairs) < 2:
        return
    (x, y), (far_x, far_y) = pairs[0], pairs[-1]
    if far_x == x or (far_y - y) % (far_x - x):
        return
    factor = (far_y - y) // (far_x - x)
    offset = y - factor * x
    if factor >= 1 and (factor, offset) != (1, 0):
        scaled: Expr = Ref(right) if factor == 1 else Ref(right) * factor
        yield Compare("==", Ref(left), scaled if offset == 0 else _shifted(scaled, offset))


def _shifted(expr: Expr, offset: int) -> Expr:
    return expr + offset if offset > 0 else expr - (-offset)


def _of_sums_and_products(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    names = _names(answered)
    for left, right in itertools.combinations(names, 2):
        yield from _bounds(Ref(left) + Ref(right), answered, refused)
        yield from _bounds(Ref(left) * Ref(right), answered, refused)
        for term in (Ref(left) + Ref(right), Ref(left) * Ref(right)):
            values = [evaluate(term, sizes) for sizes in answered]
            for multiple, rest in multiples_of(values):
                if rest == 0:
                    yield Compare("==", term % multiple, Number(0))
    for left, right in itertools.permutations(names, 2):
        yield from _bounds(Ref(left) - Ref(right), answered, refused)
    for total in names:
        for left, right in itertools.combinations([name for name in names if name != total], 2):
            whole = Compare("==", Ref(left) + Ref(right), Ref(total))
            yield whole
            yield any_of([whole, Compare("==", Ref(total), Number(1))])
            yield Compare("<=", Ref(left) + Ref(right), Ref(total))
            yield Compare("==", Ref(left) * Ref(right), Ref(total))
    for side, area in itertools.permutations(names, 2):
        yield Compare("==", Ref(side) * Ref(side), Ref(area))
    for name in names:
        root = Op(ROOT, (Ref(name),))
        yield Compare("==", root * root, Ref(name))


def _bounds(term: Expr, answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    """The tightest ends that the answered points allow, if refused points lie right beyond them."""
    inside = [evaluate(term, sizes) for sizes in answered]
    outside = [evaluate(term, sizes) for sizes in refused]
    if any(value < min(inside) for value in outside):
        yield Compare(">=", term, Number(min(inside)))
    if any(value > max(inside) for value in outside):
        yield Compare("<=", term, Number(max(inside)))


def _of_exceptions(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    for name in _names(answered):
        for size in sorted({sizes[name] for sizes in refused} - {sizes[name] for sizes in answered}):
            yield Compare("!=", Ref(name), Number(size))


def _unions(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    """Two rules of one dim of which at least one holds at every answered point."""
    parts = [rule for rule in _parts_of_unions(answered) if any(not holds(rule, sizes) for sizes in refused)]
    inside = {rule: frozenset(i for i, sizes in enumerate(answered) if holds(rule, sizes)) for rule in parts}
    everything = frozenset(range(len(answered)))
    ranked = sorted(parts, key=lambda rule: -len(inside[rule]))[:_MOST_IN_UNIONS]
    for one, other in itertools.combinations(ranked, 2):
        if inside[one] | inside[other] == everything and inside[one] != everything != inside[other]:
            yield any_of([one, other])


def _parts_of_unions(answered: Sequence[Sizes]) -> Iterator[Condition]:
    names = _names(answered)
    for name in names:
        seen = sorted({sizes[name] for sizes in answered})
        yield from (Compare("==", Ref(name), Number(size)) for size in seen[:4])
        yield from (Compare("==", Ref(name) % multiple, Number(0)) for multiple in (2, 3, 4, 5, 6, 7, 8, 16, 32))
        yield from (Compare("<=", Ref(name), Number(size)) for size in seen[:3])
        yield from (Compare(">=", Ref(name), Number(size)) for size in seen[-3:])
    for left, right in itertools.permutations(names, 2):
        yield Compare("==", Ref(left), Ref(right))
        yield Compare("<=", Ref(left), Ref(right))


def _names(points: Sequence[Sizes]) -> list[str]:
    return list(points[0]) if points else []
