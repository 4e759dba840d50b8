"""The open axes and the symbols of an exported program, in the user's dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from anyshape.domain import Expr, Number
from anyshape.inputs import Declared


def open_axes(declared: Declared) -> tuple[Any, ...]:
    """What torch.export takes as dynamic shapes, one entry a leaf."""
    return tuple(
        Dim.AUTO
        if leaf.number is not None
        else {axis: Dim.AUTO for axis, size in enumerate(leaf.axes) if not isinstance(size, Number)}
        for leaf in declared.open_leaves
    )


def symbols_of(program: ExportedProgram, sizes: Sequence[tuple[Expr | None, ...]]) -> dict[str, Expr]:
    """Each size symbol of the program's inputs; `sizes` has the expressions of each input's axes, or of its number."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    symbols: dict[str, Expr] = {}
    for name, expressions in zip(program.graph_signature.user_inputs, sizes, strict=True):
        value = placeholders[str(name)].meta["val"]
        found = value.shape if isinstance(value, torch.Tensor) else (value,)
        for size, expression in zip(found, expressions, strict=True):
            # The term as first written: torch shows what it replaced the symbol by, `_expr` the symbol itself.
            term = getattr(getattr(size, "node", None), "_expr", None)
            if expression is not None and term is not None and term.is_Symbol:
                symbols[term.name] = expression
    return symbols


def declared_sizes(declared: Declared) -> list[tuple[Expr | None, ...]]:
    """The expressions of every open leaf, as `symbols_of` takes them."""
    return [(leaf.number,) if leaf.number is not None else leaf.axes for leaf in declared.open_leaves]
