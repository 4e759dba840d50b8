"""The sizes of the dims in one example: every declared axis is an equation.

Dims that stand alone are read off; what stands only inside an expression is solved for, and must have one solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyshape.domain import Compare, Dim, Domain, Expr, Number, Ref, dims_of, evaluate, smallest_point
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.axis_messages import inconsistent_sizes, undetermined_dim, unsolvable_size


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
