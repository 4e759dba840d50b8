"""Numbers seen at many points: what a fit has to explain.

A point is an assignment of integers to names: dims in the main program, dims and step counters inside a loop, dims and
positions inside a constant tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anyshape.domain import Expr, Number, Op, Ref

Integers = NDArray[np.int64]
Column = tuple[Expr, Integers]

WORST = 2**62


class Points:
    """The points of a fit, one array for each name."""

    def __init__(self, points: Sequence[Mapping[str, int]], learned: Sequence[Expr] = ()) -> None:
        names = list(points[0]) if points else []
        self.columns: dict[str, Integers] = {
            name: np.array([point[name] for point in points], dtype=np.int64) for name in names
        }
        self.count = len(points)
        self.learned = tuple(learned)

    def where(self, chosen: NDArray[np.bool_]) -> Points:
        """The chosen points alone."""
        part = Points((), self.learned)
        part.columns = {name: column[chosen] for name, column in self.columns.items()}
        part.count = int(chosen.sum())
        return part

    @cached_property
    def names(self) -> list[Column]:
        """Every name that varies, as an expression with its values."""
        return [(Ref(name), column) for name, column in self.columns.items() if len(np.unique(column)) > 1]

    @cached_property
    def atoms(self) -> list[Column]:
        """The names, and the expressions that other numbers of the same program turned out to be."""
        found = list(self.names)
        seen = {expr for expr, _ in found}
        for expr in self.learned:
            if expr not in seen:
                column = self.evaluate(expr)
                if column is not None and len(np.unique(column)) > 1:
                    found.append((expr, column))
                    seen.add(expr)
        return found

    def evaluate(self, expr: Expr) -> Integers | None:
        """The expression at all points; None where it has no value at one of them."""
        if isinstance(expr, Number):
            return np.full(self.count, expr.value, dtype=np.int64)
        if isinstance(expr, Ref):
            return self.columns.get(expr.name)
        assert isinstance(expr, Op)
        parts = [self.evaluate(part) for part in expr.args]
        values = [part for part in parts if part is not None]
        if len(values) != len(parts):
            return None
        return _apply(expr.symbol, values)


def _apply(symbol: str, values: list[Integers]) -> Integers | None:
    if symbol in ("min", "max"):
        reduce = np.minimum if symbol == "min" else np.maximum
        result = values[0]
        for value in values[1:]:
            result = reduce(result, value)
        return result
    left, right = values
    if symbol in ("//", "%") and not right.all():
        return None
    operations = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod}
    result = operations[symbol](left, right)
    return None if np.abs(result).max(initial=0) > WORST else result
