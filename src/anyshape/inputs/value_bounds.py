"""Which values an input may have, as the user declares it: `{"ids": "0 <= ids < 1000", "lengths": "1 <= lengths <= seq"}`.

Bounds are numbers or expressions of the dims. An input whose name is no Python name (`cache.0`) is called `value` in its
bounds.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.domain import Domain, Expr, dims_of, evaluate, parse_expr
from anyshape.findings import DeclarationError, check_choice
from anyshape.inputs.bounded_making import BoundedMaker
from anyshape.inputs.declared import Declared, InputLeaf, Sizes
from anyshape.inputs.value_messages import example_outside, no_bounds, unknown_dim_in_bounds, unknown_input_of_values

GIVEN = "given"
_OTHER = "value"
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_SYMBOLS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}


@dataclass(frozen=True)
class Bound:
    """The input compared with a number or an expression of the dims: `input <= limit`."""

    symbol: str
    limit: float | Expr

    def at(self, sizes: Sizes) -> float:
        return float(evaluate(self.limit, sizes)) if isinstance(self.limit, Expr) else self.limit


@dataclass(frozen=True)
class ValueBounds:
    """The bounds of one input, and the text that declares them."""

    text: str
    bounds: tuple[Bound, ...]

    def range_at(self, sizes: Sizes, dtype: str) -> tuple[float, float]:
        """The lowest and highest legal value at these sizes; infinite where there is no bound."""
        low, high = -math.inf, math.inf
        for bound in self.bounds:
            limit = bound.at(sizes)
            if bound.symbol in (">", ">=", "=="):
                low = max(low, _next(limit, math.inf, dtype) if bound.symbol == ">" else limit)
            if bound.symbol in ("<", "<=", "=="):
                high = min(high, _next(limit, -math.inf, dtype) if bound.symbol == "<" else limit)
        return low, high


def declare_values(declared: Declared, values: Mapping[str, str] | str | None) -> Declared:
    """The declaration with the bounds of its inputs' values. Raises DeclarationError on bounds that say nothing."""
    if values is None:
        return declared
    if isinstance(values, str):
        check_choice("values", values, (GIVEN,))
        return replace(declared, value_texts={leaf.name: GIVEN for leaf in declared.tensor_leaves})
    found = {
        leaf.name: (leaf, _parse(leaf, text, declared.domain))
        for leaf, text in ((_leaf_called(name, declared), text) for name, text in values.items())
    }
    for leaf, bounds in found.values():
        _check_example(leaf, bounds, declared)

    def ranges(sizes: Sizes) -> dict[str, tuple[float, float]]:
        return {name: bounds.range_at(sizes, leaf.dtype) for name, (leaf, bounds) in found.items()}

    texts = {name: bounds.text for name, (_, bounds) in found.items()}
    make = declared.make if declared.source == "function" else BoundedMaker(declared, ranges)
    return replace(declared, make=make, value_texts=texts, value_ranges=ranges)


def lowest_texts(lowest: Mapping[str, int]) -> dict[str, str]:
    """Bounds as a user would write them: `{"groups": "groups >= 0"}`."""
    return {name: f"{name if name.isidentifier() else _OTHER} >= {low}" for name, low in lowest.items()}


def promised_values(declared: Declared, promised: Mapping[str, str]) -> Declared:
    """The declaration with the values that a file's contract has, where the user declares none."""
    names = {leaf.name for leaf in declared.tensor_leaves}
    known = {name: text for name, text in promised.items() if name in names}
    if declared.value_texts or not known:
        return declared
    return declare_values(declared, GIVEN if GIVEN in known.values() else known)


def _leaf_called(name: str, declared: Declared) -> InputLeaf:
    for leaf in declared.tensor_leaves:
        if name in (leaf.name, leaf.path):
            return leaf
    raise DeclarationError(unknown_input_of_values(name, [leaf.name for leaf in declared.tensor_leaves]))


def _parse(leaf: InputLeaf, text: Any, domain: Domain) -> ValueBounds:
    name = leaf.name if leaf.name.isidentifier() else _OTHER
    try:
        bounds = tuple(_bounds(ast.parse(str(text), mode="eval").body, (name, leaf.path, _OTHER)))
    except (SyntaxError, ValueError, DeclarationError) as error:
        raise DeclarationError(no_bounds(leaf.name, str(text), name)) from error
    for bound in bounds:
        unknown = [
            dim for dim in (dims_of(bound.limit) if isinstance(bound.limit, Expr) else ()) if dim not in domain.names
        ]
        if unknown:
            raise DeclarationError(unknown_dim_in_bounds(leaf.name, unknown[0], domain.names))
    return ValueBounds(str(text), bounds)


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
        whole = math.floor(limit) + 1 if towards > limit else math.ceil(limit) - 1
        return float(whole)
    kind = getattr(torch, dtype)
    return float(torch.nextafter(torch.tensor(limit, dtype=kind), torch.tensor(towards, dtype=kind)))


def _check_example(leaf: InputLeaf, bounds: ValueBounds, declared: Declared) -> None:
    values = dict(zip(declared.open_leaves, declared.open_values(declared.example), strict=True))
    low, high = bounds.range_at(declared.example_sizes, leaf.dtype)
    tensor = values[leaf]
    if tensor.numel() and not tensor.is_complex() and (float(tensor.min()) < low or float(tensor.max()) > high):
        raise DeclarationError(example_outside(leaf.name, bounds.text, (float(tensor.min()), float(tensor.max()))))
