"""What an exported program returns, in the user's dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anyshape.capture.sympy_terms import expression_of
from anyshape.domain import Domain, Expr, Number
from anyshape.domain.within import simplify_within
from anyshape.records.captured import Answer

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def answers_of(
    program: ExportedProgram, paths: Sequence[str], symbols: Mapping[str, Expr], domain: Domain
) -> tuple[Answer, ...]:
    """The outputs of the program, path by path; axes have the shortest expressions that the domain allows."""
    import torch

    given = next(node for node in reversed(program.graph.nodes) if node.op == "output").args[0]
    asked = set(map(str, program.graph_signature.user_outputs))
    values = [node.meta["val"] for node in given if getattr(node, "name", None) in asked]
    answers = []
    for path, value in zip(paths, values[-len(paths) :] if paths else (), strict=True):
        if isinstance(value, torch.Tensor):
            axes = tuple(_size(size, symbols, domain) for size in value.shape)
            answers.append(Answer(path, str(value.dtype).removeprefix("torch."), axes))
        else:
            kind = {torch.SymInt: "int64", torch.SymBool: "bool", int: "int64", bool: "bool"}
            answers.append(Answer(path, kind.get(type(value), "float32"), ()))
    return tuple(answers)


def _size(size: Any, symbols: Mapping[str, Expr], domain: Domain) -> Expr | None:
    if isinstance(size, int):
        return Number(size)
    found = expression_of(size.node.expr, symbols)
    return None if found is None else simplify_within(found, domain)
