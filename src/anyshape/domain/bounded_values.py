"""Bounds of an input's values, as text and as numbers at given sizes: `1 <= lengths <= seq`.

Bounds are numbers or expressions of the dims. torch is not needed here: a loaded file checks its calls by them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anyshape.domain.expr import Expr, evaluate
from anyshape.domain.parse import parse_expr

GIVEN = "given"  # in the place of bounds: nothing is known of the values but that the user's function gives them
OTHER = "value"  # what an input is called in its bounds whose name is no Python name

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_SYMBOLS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
_FLOATS = ("float16", "float64")


@dataclass(frozen=True)
class Bound:
    """The input compared with a number or an expression of the dims: `input <= limit`."""

    symbol: str
    limit: float | Expr

    def at(self, sizes: Mapping[str, int]) -> float:
        return float(evaluate(self.limit, sizes)) if isinstance(self.limit, Expr) else self.limit


@dataclass(frozen=True)
class ValueBounds:
    """The bounds of one input, and the text that declares them."""

    text: str
    bounds: tuple[Bound, ...]

    def range_at(self, sizes: Mapping[str, int], dtype: str) -> tuple[float, float]:
        """The lowest and highest legal value at these sizes; infinite where there is no bound."""
        low, high = -math.inf, math.inf
        for bound in self.bounds:
            limit = bound.at(sizes)
            if bound.symbol in (">", ">=", "=="):
                low = max(low, _next(limit, math.inf, dtype) if bound.symbol == ">" else limit)
            if bound.symbol in ("<", "<=", "=="):
                high = min(high, _next(limit, -math.inf, dtype) if bound.symbol == "<" else limit)
        return low, high


def name_in_bounds(name: str) -> str:
    """What an input of this name is called in its bounds."""
    return name if name.isidentifier() else OTHER


def lowest_text(name: str, low: int) -> str:
    """The bound as a user would write it: `groups >= 0`."""
    return f"{name_in_bounds(name)} >= {low}"


def parse_bounds(text: str, names: tuple[str, ...]) -> ValueBounds:
    """The bounds of an input that may be called by any of these names, or `value`.

    Raises SyntaxError, ValueError or DeclarationError for what is no comparison of the input with limits.
    """
    try:
        return ValueBounds(text, tuple(_bounds(ast.parse(text, mode="eval").body, (*names, OTHER))))
    except (RecursionError, MemoryError, OverflowError) as error:  # nested without end, or a number without end
        raise ValueError("Python cannot read it") from error


def _bounds(node: ast.expr, names: tuple[str, ...]) -> Iterator[Bound]:
    """Raises ValueError for what is no comparison of the input with limits."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for part in node.values:
            yield from _bounds(part, names)
        return
    if not isinstance(node, ast.Compare):
        raise ValueError("no comparison")
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        symbol = _SYMBOLS.get(type(operator))
        is_left, is_right = (isinstance(side, ast.Name) and side.id in names for side in (left, right))
        if symbol is None or is_left == is_right:
            raise ValueError("no comparison with the input")
        yield Bound(symbol, _limit(right)) if is_left else Bound(_TURNED[symbol], _limit(left))


def _limit(node: ast.expr) -> float | Expr:
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        return parse_expr(ast.unparse(node))


def _next(limit: float, towards: float, dtype: str) -> float:
    if not dtype.startswith(("float", "bfloat")):
        return float(math.floor(limit) + 1 if towards > limit else math.ceil(limit) - 1)
    import numpy as np  # here, since the command line is to answer --help without it

    kind: Any = np.dtype(dtype if dtype in _FLOATS else "float32").type
    return float(np.nextafter(kind(limit), kind(towards)))
