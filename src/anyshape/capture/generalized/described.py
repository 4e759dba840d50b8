"""What an exported program says of itself, in the user's dims: its open axes, its symbols, its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from anyshape.capture.sympy_terms import expression_of
from anyshape.domain import Domain, Expr, Number
from anyshape.domain.within import simplify_within
from anyshape.inputs import Declared
from anyshape.records.captured import Answer


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


def answers_of(
    program: ExportedProgram, paths: Sequence[str], symbols: Mapping[str, Expr], domain: Domain
) -> tuple[Answer, ...]:
    """What the program answers, path by path; axes have the shortest expressions that the domain allows."""
    given = next(node for node in reversed(program.graph.nodes) if node.op == "output").args[0]
    asked = set(map(str, program.graph_signature.user_outputs))
    values = [node.meta["val"] for node in given if getattr(node, "name", None) in asked]
    answers = []
    for path, value in zip(paths, values[-len(paths) :] if paths else (), strict=True):
        assert isinstance(value, torch.Tensor)
        found = [
            Number(size) if isinstance(size, int) else expression_of(size.node.expr, symbols) for size in value.shape
        ]
        axes = tuple(None if size is None else simplify_within(size, domain) for size in found)
        answers.append(Answer(path, str(value.dtype).removeprefix("torch."), axes))
    return tuple(answers)
