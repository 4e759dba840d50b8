"""Find the expression of the sizes that an axis follows, by calling the function of sizes at further sizes.

`ask` may be called at any point of the domain. An expression counts only if it gives the size at every point that was
asked, those that had no part in finding it included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

from anyshape.domain import Expr, Number, Op, Ref, Undefined, evaluate, simplify
from anyshape.inputs.fit_one import affine, fit_one, quotient_offset
from anyshape.inputs.probe_sizes import points_around

Point = Mapping[str, int]
Observation = tuple[Point, int]

_NEAR = range(17)
_PATCHES = (8, 14, 16, 32, 64)
_MOST_CORNERS = 4  # dims; a box of more has too many corners to ask at


@dataclass(frozen=True)
class Axis:
    """One axis to explain: the function that gives its size at a point, the sizes so far, and the corner of the box to try.

    `steps` has, for each dim that the axis depends on, another size of that dim alone.
    """

    ask: Callable[[Point], int | None]
    observations: Callable[[], Sequence[Observation]]
    base: Point
    steps: Mapping[str, int]


def fit_axis(axis: Axis) -> Expr | None:
    """The simplest expression that gives every observed size, or None."""
    for form in (_constant, _same, _affine, _multilinear, _tied_product):
        for expr in form(axis):
            if _fits_all(expr, axis):
                return simplify(expr)
    _ask_in_between(axis)
    for form in (_alone, _extreme, _divided_sum, _product, _sum):
        for expr in form(axis):
            if _fits_all(expr, axis):
                return simplify(expr)
    return None


def _fits_all(expr: Expr, axis: Axis) -> bool:
    return all(_value(expr, point) == size for point, size in axis.observations())


def _ask_in_between(axis: Axis) -> None:
    """Make observations with all dims moved a little and differently: a division shows itself in remainders that meet."""
    for point in points_around(axis.base):
        axis.ask(point)


def _value(expr: Expr, point: Point) -> int | None:
    try:
        return evaluate(expr, point)
    except Undefined:
        return None


def _constant(axis: Axis) -> Iterator[Expr]:
    yield Number(axis.observations()[0][1])


def _same(axis: Axis) -> Iterator[Expr]:
    """A dim alone; also one that the domain ties to others, so that no step moves it by itself."""
    yield from (Ref(name) for name in axis.base)


def _affine(axis: Axis) -> Iterator[Expr]:
    """past + seq, 2*n, 32 - t."""
    base = _at(axis, ())
    factors = [_coefficient(axis, (name,), [name]) for name in axis.steps]
    if base is None or None in factors:
        return
    terms: list[tuple[int, Expr]] = [
        (f, Ref(name)) for f, name in zip(factors, axis.steps, strict=True) if f is not None
    ]
    yield affine(terms, base - sum(factor * evaluate(term, axis.base) for factor, term in terms))


def _multilinear(axis: Axis) -> Iterator[Expr]:
    """Sums of products of different dims: h*w, batch*(seq + 1)."""
    names = list(axis.steps)
    if not 2 <= len(names) <= _MOST_CORNERS:
        return
    terms: list[tuple[int, Expr]] = []
    for subset in (s for size in range(1, len(names) + 1) for s in itertools.combinations(names, size)):
        factor = _coefficient(axis, subset, names)
        if factor is None:
            return
        terms.append((factor, _product_of([Ref(name) for name in subset])))
    offset = _coefficient(axis, (), names)
    if offset is not None:
        yield affine(terms, offset)


def _tied_product(axis: Axis) -> Iterator[Expr]:
    """k*h*w + c where the domain ties the dims, as h == w does, so that no step moves one of them by itself."""
    if len(axis.steps) == len(axis.base):
        return
    (first, at_first), *others = axis.observations()
    for count in range(2, min(len(axis.base), _MOST_CORNERS) + 1):
        for names in itertools.combinations(axis.base, count):
            product = _product_of([Ref(name) for name in names])
            begin = evaluate(product, first)
            # The farthest observation gives the factor best; every other one must agree with it.
            end, at_end = max(((evaluate(product, point), size) for point, size in others), default=(begin, at_first))
            factor, rest = divmod(at_end - at_first, end - begin) if end != begin else (0, 1)
            if factor > 0 and rest == 0:
                yield affine([(factor, product)], at_first - factor * begin)


def _product_of(factors: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: left * right, factors)


def _coefficient(axis: Axis, subset: tuple[str, ...], names: Sequence[str]) -> int | None:
    """The factor of the product of these dims in the multilinear function through the corners of the box of `names`."""
    # Lagrange's basis on two sizes per dim: (d - base)/(step - base) and (step - d)/(step - base).
    total, width = 0, 1
    for name in names:
        width *= axis.steps[name] - axis.base[name]
    for moves in itertools.product((False, True), repeat=len(names)):
        corner = dict(zip(names, moves, strict=True))
        value = _at(axis, [name for name in names if corner[name]])
        if value is None:
            return None
        for name, moved in corner.items():
            if name in subset:
                value *= 1 if moved else -1
            else:
                value *= -axis.base[name] if moved else axis.steps[name]
        total += value
    return total // width if total % width == 0 else None


def _at(axis: Axis, moved: Sequence[str]) -> int | None:
    return axis.ask({**axis.base, **{name: axis.steps[name] for name in moved}})


def _along(axis: Axis, name: str) -> dict[int, int]:
    """Observations with one dim moved and the others at the base."""
    near = [axis.base[name] + step for step in _NEAR]
    far = [multiple * patch + step for patch in _PATCHES for multiple in (1, 2) for step in (-1, 0, 1)]
    asked = {size: axis.ask({**axis.base, name: size}) for size in (*near, *far, axis.steps.get(name, near[0]))}
    return {size: value for size, value in asked.items() if value is not None}


def _alone(axis: Axis) -> Iterator[Expr]:
    """One dim; where no step moved the axis, since a remainder may come back to itself, any of them."""
    for name in axis.steps or axis.base:
        expr = fit_one(name, _along(axis, name)) if len(axis.steps) <= 1 else None
        if expr is not None:
            yield expr


def _extreme(axis: Axis) -> Iterator[Expr]:
    """The smaller or the larger of two dims, give or take a constant."""
    base = _at(axis, ())
    for symbol, pair in itertools.product(("min", "max"), itertools.combinations(axis.base, 2)):
        # All dims, not those that moved it alone: the larger of two does not move the smaller.
        expr = Op(symbol, tuple(Ref(name) for name in pair))
        if base is not None:
            yield affine([(1, expr)], base - evaluate(expr, axis.base))


def _divided_sum(axis: Axis) -> Iterator[Expr]:
    """(a + b + c)//k."""
    names = list(axis.steps)
    if len(names) != 2:
        return
    for name in names:
        _along(axis, name)
    for divisor, *factors in itertools.product(range(2, 17), (1, 2, 3, -1), (1, 2, 3, -1)):
        numerators = [
            (sum(factor * point[name] for factor, name in zip(factors, names, strict=True)), size)
            for point, size in axis.observations()
        ]
        offset = quotient_offset(iter(numerators), divisor)
        if offset is not None:
            refs: list[Expr] = [Ref(name) for name in names]
            yield affine(list(zip(factors, refs, strict=True)), offset) // divisor


def _product(axis: Axis) -> Iterator[Expr]:
    """u(a)*v(b), and a token or two: (h//4)*(w//4) + 1."""
    base = _at(axis, ())
    if len(axis.steps) < 2 or base is None:
        return
    for offset in (0, 1, 2):
        parts = [_factor(name, _along(axis, name), offset) for name in axis.steps]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            continue
        product = _product_of(known)
        scale = evaluate(product, axis.base)
        if scale and (base - offset) % scale == 0:
            yield affine([((base - offset) // scale, product)], offset)


def _factor(name: str, samples: Mapping[int, int], offset: int) -> Expr | None:
    """What a product is in one of its dims, up to a factor."""
    shared = gcd(*(value - offset for value in samples.values())) or 1
    return fit_one(name, {size: (value - offset) // shared for size, value in samples.items()})


def _sum(axis: Axis) -> Iterator[Expr]:
    """u(a) + v(b): h//2 + w//2."""
    base = _at(axis, ())
    if len(axis.steps) < 2 or base is None:
        return
    parts = [fit_one(name, _along(axis, name)) for name in axis.steps]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts):
        total = reduce(lambda a, b: a + b, known)
        yield affine([(1, total)], base - evaluate(total, axis.base))
