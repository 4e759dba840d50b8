"""What examples show: the sizes of the dims in one of them, and in several how the sizes of axes follow from one another.

Dims that stand alone are read off; what stands only inside an expression is solved for, and must have one solution.

Few examples show many accidents, so only what people write is looked for: the same, a sum of two, a multiple, and with
three different sizes or more also an offset, a difference from a constant, and halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.domain import Compare, Dim, Domain, Expr, Number, Ref, dims_of, evaluate, simplify, smallest_point
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.axis_messages import inconsistent_sizes, undetermined_dim, unsolvable_size
from anyshape.inputs.axis_moves import Place
from anyshape.inputs.by_trying import name_of
from anyshape.inputs.fit_one import affine

_MULTIPLES = (2, 3, 4)
_ENOUGH = 3
_LARGE = 8  # among smaller sizes halves are met by accident


@dataclass(frozen=True)
class Equation:
    """An axis of an input, what it is declared to be, and its size in the example."""

    path: str
    axis: int
    expr: Expr
    size: int


def solve_sizes(equations: Sequence[Equation], example: str = "") -> dict[str, int]:
    """The size of every dim. Raises DeclarationError where sizes disagree or are not determined."""
    sizes = _read_off(equations, example)
    unsolved = [equation for equation in equations if any(name not in sizes for name in dims_of(equation.expr))]
    for equation in equations:
        if equation not in unsolved and evaluate(equation.expr, sizes) != equation.size:
            raise DeclarationError(_disagreement(equation, sizes, example))
    return {**sizes, **_solve(unsolved, sizes, example)} if unsolved else sizes


def _read_off(equations: Sequence[Equation], example: str) -> dict[str, int]:
    seen: dict[str, Equation] = {}
    for equation in equations:
        if not isinstance(equation.expr, Ref):
            continue
        first = seen.setdefault(equation.expr.name, equation)
        if first.size != equation.size:
            places = [(one.path, one.axis, one.size) for one in (first, equation)]
            raise DeclarationError(inconsistent_sizes(equation.expr.name, places[0], places[1], example))
    return {name: equation.size for name, equation in seen.items()}


def _solve(unsolved: Sequence[Equation], sizes: dict[str, int], example: str) -> dict[str, int]:
    names = list(dict.fromkeys(name for equation in unsolved for name in dims_of(equation.expr)))
    known = [Compare("==", Ref(name), Number(sizes[name])) for name in names if name in sizes]
    rules = [*known, *(Compare("==", equation.expr, Number(equation.size)) for equation in unsolved)]
    domain = Domain(tuple(Dim(name, min=0) for name in names))
    point = smallest_point(domain, *rules)
    if point is None:
        raise DeclarationError(_disagreement(unsolved[0], sizes, example))
    for name in names:
        other = smallest_point(domain, *rules, Compare("!=", Ref(name), Number(point[name])))
        if other is not None:
            owner = next(equation for equation in unsolved if name in dims_of(equation.expr))
            values = (point[name], other[name])
            raise DeclarationError(undetermined_dim(name, owner.path, owner.axis, str(owner.expr), values))
    return point


def _disagreement(equation: Equation, sizes: dict[str, int], example: str) -> Finding:
    known = {name: sizes[name] for name in dims_of(equation.expr) if name in sizes}
    return unsolvable_size(equation.path, equation.axis, str(equation.expr), equation.size, known, example)


AtEachExample = tuple[int, ...]


@dataclass(frozen=True)
class Column:
    """One axis in all examples."""

    place: Place
    sizes: AtEachExample

    @property
    def varies(self) -> bool:
        return len(set(self.sizes)) > 1


def infer_columns(columns: Sequence[Column], known: Mapping[str, AtEachExample]) -> dict[Place, Expr]:
    """An expression for each column: a number, a known dim, what follows from dims, or a dim of its own."""
    found: dict[Place, Expr] = {column.place: Number(column.sizes[0]) for column in columns if not column.varies}
    varying = [column for column in columns if column.varies]
    first: dict[AtEachExample, Place] = {}
    for column in varying:
        first.setdefault(column.sizes, column.place)
    meanings = _meanings(first, known)
    found.update({column.place: meanings[column.sizes] for column in varying})
    return found


def _meanings(first: Mapping[AtEachExample, Place], known: Mapping[str, AtEachExample]) -> dict[AtEachExample, Expr]:
    """Small columns are dims before large ones, so that a sum is found as one."""
    meanings: dict[AtEachExample, Expr] = {sizes: Ref(name) for name, sizes in known.items()}
    own: list[AtEachExample] = []
    for sizes in sorted(first, key=sum):
        if sizes in meanings:
            continue
        expr = _as_sum(sizes, meanings) or _as_other(sizes, meanings)
        if expr is None:
            own.append(sizes)
            expr = Ref(_dim_name(first[sizes]))
        meanings[sizes] = expr
    for sizes in own:  # a half is smaller than its whole, and came first
        others = {
            other: expr for other, expr in meanings.items() if other != sizes and not _speaks_of(expr, meanings[sizes])
        }
        half = _as_half(sizes, others)
        if half is not None:
            meanings = {key: _replaced(expr, meanings[sizes], half) for key, expr in meanings.items()}
    return {sizes: simplify(expr) for sizes, expr in meanings.items()}


def _dim_name(place: Place) -> str:
    path, axis = place
    return name_of(place) if axis >= 0 else name_of((path, 0)).removesuffix("_0")


def _as_sum(sizes: AtEachExample, meanings: Mapping[AtEachExample, Expr]) -> Expr | None:
    candidates = list(meanings.items())
    for index, (one, first) in enumerate(candidates):
        for two, second in candidates[index + 1 :]:
            if all(a + b == size for a, b, size in zip(one, two, sizes, strict=True)) and _differ(one, two):
                return first + second
    return None


def _differ(one: AtEachExample, two: AtEachExample) -> bool:
    """Whether the sum of two columns explains more than an offset of one of them would."""
    return len(set(one)) > 1 and len(set(two)) > 1


def _as_other(sizes: AtEachExample, meanings: Mapping[AtEachExample, Expr]) -> Expr | None:
    for other, expr in meanings.items():
        for factor in _MULTIPLES:
            if all(factor * size == mine for size, mine in zip(other, sizes, strict=True)):
                return factor * expr
    for other, expr in meanings.items():
        if len(set(other)) < _ENOUGH:
            continue
        for factor in (1, -1):
            offsets = {mine - factor * size for size, mine in zip(other, sizes, strict=True)}
            if len(offsets) == 1:
                return affine([(factor, expr)], offsets.pop())
    return None


def _as_half(sizes: AtEachExample, meanings: Mapping[AtEachExample, Expr]) -> Expr | None:
    for other, expr in meanings.items():
        if len(set(other)) < _ENOUGH or len({size % 2 for size in other}) < 2 or max(other) < _LARGE:
            continue
        for offset in (0, 1):
            if all((size + offset) // 2 == mine for size, mine in zip(other, sizes, strict=True)):
                return (expr + offset) // 2
    return None


def _names(expr: Expr) -> Iterator[str]:
    from anyshape.domain import dims_of

    yield from dims_of(expr)


def _speaks_of(expr: Expr, dim: Expr) -> bool:
    return any(name in set(_names(dim)) for name in _names(expr))


def _replaced(expr: Expr, dim: Expr, by: Expr) -> Expr:
    from anyshape.domain import substitute

    (name,) = _names(dim)
    return substitute(expr, {name: by})
