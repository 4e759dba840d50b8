"""Sizes at which a function of sizes is called to learn its axes: distinct primes where the domain has them, its own sizes
where not, and dims that follow others moved together.

An axis is then asked as a function of the dims that are left free, and the tied ones move with them.

Distinct primes, since the size 30 of an axis then says `13 + 17` and not `batch`. Dims are set one after the other; the
solver is asked only where the rules of the domain tie them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.domain import (
    Compare,
    Dim,
    Domain,
    Expr,
    Number,
    Op,
    Ref,
    Undefined,
    conjuncts,
    dims_of,
    evaluate,
    substitute,
)
from anyshape.domain.telling_points import primes_between

Point = dict[str, int]
_PRIMES = primes_between(7, 61)
_FAR_PRIMES = primes_between(67, 113)
_EXAMPLES = (3, 5, 7, 2, 4, 6, 11, 13, 17, 19, 23)
_NEAR = 24


@dataclass(frozen=True)
class Ties:
    """Each tied dim as an expression of free ones."""

    follows: Mapping[str, Expr]

    def complete(self, point: Mapping[str, int]) -> Point:
        """The point with every tied dim where its tie puts it."""
        completed = dict(point)
        for name, expr in self.follows.items():
            try:
                completed[name] = evaluate(expr, completed)
            except Undefined:
                completed[name] = -1  # in no domain
        return completed

    def name_both(self, expr: Expr) -> Expr:
        """`h*h`  ->  `h*w` where `w == h`: a dim that no axis names would be no dim at all."""
        for name, other in self.follows.items():
            if isinstance(other, Ref) and _count(expr, other.name) > 1:
                expr = _replace_last(expr, other.name, Ref(name))
        return expr


def find_ties(domain: Domain, among: Collection[str] | None = None) -> Ties:
    """The equalities of the domain that give a dim (one of `among`, where that is given) in terms of others."""
    follows: dict[str, Expr] = {}
    for relation in domain.relations:
        for part in conjuncts(relation):
            solved = _solved(part, follows) if isinstance(part, Compare) else iter(())
            wanted = ((name, expr) for name, expr in solved if among is None or name in among)
            name, expr = next(wanted, (None, None))
            if name is None or expr is None:
                continue
            follows = {known: substitute(other, {name: expr}) for known, other in follows.items()}
            follows[name] = expr
    return Ties(follows)


def _solved(part: Compare, follows: Mapping[str, Expr]) -> Iterator[tuple[str, Expr]]:
    """The later dim first: of `h == w` it is w that follows."""
    if part.op != "==":
        return
    for one, other in ((part.right, part.left), (part.left, part.right)):
        expr = substitute(other, follows)
        if isinstance(one, Ref) and one.name not in follows and dims_of(expr) and one.name not in dims_of(expr):
            yield one.name, expr


def _count(expr: Expr, name: str) -> int:
    if isinstance(expr, Ref):
        return int(expr.name == name)
    return sum(_count(arg, name) for arg in expr.args) if isinstance(expr, Op) else 0


def _replace_last(expr: Expr, name: str, by: Expr) -> Expr:
    if isinstance(expr, Ref):
        return by if expr.name == name else expr
    if not isinstance(expr, Op):
        return expr
    last = max((index for index, arg in enumerate(expr.args) if _count(arg, name)), default=None)
    args = [_replace_last(arg, name, by) if index == last else arg for index, arg in enumerate(expr.args)]
    return Op(expr.symbol, tuple(args))


def base_points(domain: Domain, example: Point) -> Iterator[Point]:
    """Where probing may begin: at small distinct primes, else nearer and nearer to the example."""
    yield choose_point(domain, _PRIMES)
    yield choose_point(domain, (7, 5, 3, 2))
    yield choose_point(domain, _EXAMPLES[::-1])
    for offset in (2, 1):
        near = {name: size + offset * (index + 1) for index, (name, size) in enumerate(example.items())}
        if domain.contains(near):
            yield near
    if domain.contains(example):
        yield example


def start_points(domain: Domain, base: Point) -> Iterator[Point]:
    """Where steps begin: at the base, and for what is 0 there (pieces of 16 in a size of 7) at large primes."""
    yield base
    yield choose_point(domain, _FAR_PRIMES)


def other_points(domain: Domain, base: Point) -> Iterator[Point]:
    """Points that share no size with the base where that can be: the second probe."""
    fresh = [prime for prime in (*reversed(_PRIMES[:10]), 5, 3, 2) if prime not in base.values()]
    yield choose_point(domain, fresh, avoid=base)
    yield choose_point(domain, fresh[::-1], avoid=base)
    for step in (1, -1, 2):
        near = {name: size + step for name, size in base.items()}
        if domain.contains(near):
            yield near


def points_around(base: Mapping[str, int]) -> Iterator[Point]:
    """Eight points with all dims moved a little and differently, in or outside of the domain."""
    for offset in range(1, 9):
        yield {name: size + offset * (3 * index + 1) % 13 for index, (name, size) in enumerate(base.items())}


def step_points(
    domain: Domain, base: Point, name: str, complete: Callable[[Point], Point] = dict[str, int]
) -> Iterator[Point]:
    """The base with this dim elsewhere, far away if it can be; other dims move only where the domain makes them.

    `complete` moves the dims that are tied to the moved one by an equality.
    """
    near = [base[name] + step for step in (1, -1, 2, -2)]
    far = [prime for prime in (*_FAR_PRIMES[::-3], *_PRIMES[::-3]) if prime not in base.values()]
    for size in [*_sizes(domain.dim(name), far), *near]:
        point = complete({**base, name: size})
        if size != base[name] and domain.contains(point):
            yield point
    from anyshape.domain import smallest_point

    if domain.relations:
        moved = smallest_point(domain, Compare("!=", Ref(name), Number(base[name])))
        if moved is not None:
            yield moved


def choose_example(domain: Domain, given: Mapping[str, int]) -> Point:
    """Small distinct sizes for the dims without a given size."""
    return choose_point(domain, _EXAMPLES, given=given)


def choose_point(
    domain: Domain,
    wanted: Sequence[int],
    *,
    given: Mapping[str, int] | None = None,
    avoid: Mapping[str, int] | None = None,
) -> Point:
    """A point with sizes as distinct as the domain allows, the wanted ones first."""
    fixed: Point = dict(given or {})
    for dim in domain.dims:
        if dim.name in fixed:
            continue
        taken = set(fixed.values())
        sizes = [size for size in _sizes(dim, wanted) if avoid is None or size != avoid.get(dim.name)]
        ordered = [size for size in sizes if size not in taken] + [size for size in sizes if size in taken]
        for size in ordered[: _NEAR + len(wanted)] + list(_sizes(dim, ())):
            if _is_possible(domain, {**fixed, dim.name: size}):
                fixed[dim.name] = size
                break
        else:
            fixed[dim.name] = _some_size(domain, fixed, dim)
    return {name: fixed[name] for name in domain.names}


def _sizes(dim: Dim, wanted: Sequence[int]) -> Iterator[int]:
    """The wanted sizes that the dim allows, scaled to its multiple, then its own from the smallest on."""
    for size in wanted:
        scaled = size if size % dim.multiple == 0 else size * dim.multiple
        if dim.contains(scaled):
            yield scaled
    top = dim.largest_up_to(dim.smallest + _NEAR * dim.multiple)
    if top is not None:
        yield from range(top, dim.smallest - 1, -dim.multiple)


def _is_possible(domain: Domain, fixed: Point) -> bool:
    if not domain.relations:
        return True
    if len(fixed) == len(domain.names):
        return domain.contains(fixed)
    from anyshape.domain import find_point

    return find_point(domain, *_equalities(fixed)) is not None


def _some_size(domain: Domain, fixed: Point, dim: Dim) -> int:
    from anyshape.domain import smallest_point

    point = smallest_point(domain, *_equalities(fixed))
    return point[dim.name] if point is not None else dim.smallest


def _equalities(fixed: Point) -> list[Compare]:
    return [Compare("==", Ref(name), Number(size)) for name, size in fixed.items()]
