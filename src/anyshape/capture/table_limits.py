"""Rows of tables that a captured program reads by counted positions: the positions have to lie inside the table.

embedding(table of 36 rows, arange((h//4)*(w//4)))  ->  (h//4)*(w//4) <= 36
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from anyshape.capture.sympy_terms import expression_of
from anyshape.domain import Compare, Condition, Expr, Number, simplify
from anyshape.records.captured import Region

if TYPE_CHECKING:
    from torch.fx import Node

_SAME_VALUES = ("unsqueeze", "squeeze", "expand", "view", "reshape", "repeat", "flatten", "contiguous", "clone", "to")


def find_table_limits(region: Region) -> Iterator[Condition]:
    """What keeps each counted position inside the table from which it takes a row."""
    counts: dict[Node, Expr] = {}  # of tensors with positions: one more than their largest
    for node in region.program.graph.nodes:
        kind = _kind(node)
        count = _count(node, kind, counts, region)
        if count is not None:
            counts[node] = count
        for table, axis, positions in _reads(node, kind):
            rows = _size(table.meta["val"].shape[axis], region)
            if positions in counts and rows is not None:
                yield Compare("<=", counts[positions], rows)


def _kind(node: Node) -> str:
    return str(getattr(node.target, "_opname", ""))


def _count(node: Node, kind: str, counts: dict[Node, Expr], region: Region) -> Expr | None:
    if kind == "arange" and len(node.args) <= 2:
        return _number(node.args[-1], region)
    if kind in _SAME_VALUES:
        return counts.get(node.args[0])  # type: ignore[arg-type]
    if kind == "add":
        for one, other in (node.args[:2], node.args[1::-1]):
            shift = _number(other, region)
            if one in counts and shift is not None:
                return simplify(counts[one] + shift)  # type: ignore[index]
    return None


def _reads(node: Node, kind: str) -> Iterator[tuple[Any, int, Any]]:
    """The tables that an operator reads: each with the axis, and the positions on it."""
    if kind == "embedding":
        yield node.args[0], 0, node.args[1]
    if kind == "index_select":
        table, axis, positions = node.args
        yield table, cast("int", axis), positions
    if kind == "index":
        places = enumerate(cast("Sequence[Any]", node.args[1]))
        yield from ((node.args[0], axis, each) for axis, each in places if each is not None)


def _number(value: Any, region: Region) -> Expr | None:
    """A whole number of the program in the user's dims; None for tensors and other values."""
    return _size(value.meta.get("val") if hasattr(value, "meta") else value, region)


def _size(value: Any, region: Region) -> Expr | None:
    import torch

    if isinstance(value, torch.SymInt):
        return expression_of(value.node.expr, region.symbols)
    return Number(value) if type(value) is int else None
