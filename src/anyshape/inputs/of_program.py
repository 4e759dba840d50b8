"""What a torch.export program declares about its inputs: the example that it was made from, its dynamic axes, their ranges."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from anyshape.inputs.calls import Inputs


@dataclass(frozen=True)
class ProgramInputs:
    """The example, `dynamic` as `anyshape.export` takes it, and the rules for its dims, which have torch's names (`s77`)."""

    example: Inputs
    dynamic: dict[str, Any] | None
    where: tuple[str, ...]


def inputs_of_program(program: torch.export.ExportedProgram) -> ProgramInputs:
    """Read the declaration from a program; axes that are no plain symbol stay as the example has them."""
    args, kwargs = program.example_inputs or ((), {})
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    leaves = [_axes(nodes[name].meta.get("val")) if name in nodes else None for name in _user_inputs(program)]
    by_place, by_name = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    names = list(inspect.signature(program.module().forward).parameters)
    dynamic = {**dict(zip(names, by_place, strict=False)), **by_name}
    used = {symbol for leaf in leaves if leaf for symbol in leaf.values()}
    where = [rule for symbol in sorted(used) for rule in _rules(symbol, program)]
    return ProgramInputs(Inputs(tuple(args), dict(kwargs)), dynamic if used else None, tuple(where))


def _user_inputs(program: torch.export.ExportedProgram) -> list[Any]:
    return list(program.graph_signature.user_inputs)


def _axes(value: Any) -> dict[int, str] | None:
    """Axis -> symbol, for the axes of a tensor that are one."""
    if not isinstance(value, torch.Tensor):
        return None
    return {axis: str(size) for axis, size in enumerate(value.shape) if str(size).isidentifier()}


def _rules(symbol: str, program: torch.export.ExportedProgram) -> list[str]:
    """`1 <= s77 <= 32`, or `s77 >= 1` without an upper end."""
    ends = next((ends for known, ends in program.range_constraints.items() if str(known) == symbol), None)
    if ends is None:
        return []
    has_end = getattr(ends.upper, "is_Integer", False)
    return [f"{ends.lower} <= {symbol} <= {ends.upper}" if has_end else f"{symbol} >= {ends.lower}"]
