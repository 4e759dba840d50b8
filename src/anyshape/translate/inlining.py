"""Custom operators without a translation -> their Python bodies, traced at the program's own symbolic sizes.

    torch.ops.mylib.scale(x)  ->  what the function does that `torch.library` was given for it, if torch can follow it

Only kernels that were registered from Python are called: a compiled one would read memory that a traced tensor has not.
torch's private names are used for this (`torch.library._impls` knows where a kernel came from, `_op_dk` calls it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import HigherOrderOperator, OpOverload

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Decomposition = Callable[..., Any]

_NOT_USERS = ("aten", "prim", "prims", "anyshape")  # torch has Python kernels too, and they lead back to themselves
_KERNELS = ("CPU", "CompositeExplicitAutograd")


class Inliner:
    """Bodies of operators, as decompositions; `refusals` has the error of each that could not be followed."""

    def __init__(self, is_translated: Callable[[OpOverload], bool]) -> None:
        self._is_translated = is_translated
        self.refusals: dict[str, BaseException] = {}

    def decompose(self, program: ExportedProgram, table: dict[Any, Decomposition]) -> ExportedProgram:
        """The program decomposed by the table and, where that leaves a custom operator, by its body."""
        bodies: dict[OpOverload, Decomposition] = {}
        result = program.run_decompositions(table)
        while fresh := {each: body for each, body in self._bodies(result) if each not in bodies}:
            bodies |= fresh
            result = self._decompose_by_bodies(program, table, bodies) or result
            bodies = {target: body for target, body in bodies.items() if target.name() not in self.refusals}
        return result

    def _decompose_by_bodies(
        self, program: ExportedProgram, table: dict[Any, Decomposition], bodies: dict[OpOverload, Decomposition]
    ) -> ExportedProgram | None:
        """Without those bodies that refuse; None if that leaves none."""
        while followed := {each: body for each, body in bodies.items() if each.name() not in self.refusals}:
            known = len(self.refusals)
            try:
                return program.run_decompositions(table | followed)
            except Exception:
                if len(self.refusals) == known:
                    raise
        return None

    def _bodies(self, program: ExportedProgram) -> Iterator[tuple[OpOverload, Decomposition]]:
        for target in operators_of(program):
            if target.namespace in _NOT_USERS or target.name() in self.refusals or self._is_translated(target):
                continue
            kernel = find_python_kernel(target)
            if kernel is not None and not target._schema.is_mutable:
                yield target, self._watched(target, kernel)

    def _watched(self, target: OpOverload, kernel: Decomposition) -> Decomposition:
        def body(*args: Any, **kwargs: Any) -> Any:
            try:
                return kernel(*args, **kwargs)
            except Exception as error:
                self.refusals.setdefault(target.name(), error)
                raise

        return body


def find_python_kernel(target: OpOverload) -> Decomposition | None:
    """The kernel that eager runs on the CPU, if it was registered from Python; None for a compiled one."""
    namespace, _, name = target.name().partition("::")
    for key in _KERNELS:
        if f"{namespace}/{name}/{key}" in torch.library._impls:
            dispatch_key = getattr(torch._C.DispatchKey, key)
            return lambda *args, **kwargs: target._op_dk(dispatch_key, *args, **kwargs)
        if target.has_kernel_for_dispatch_key(getattr(torch._C.DispatchKey, key)):
            return None
    return None


def operators_of(program: ExportedProgram) -> list[OpOverload]:
    """Every operator that a program calls, once, in order; those that torch wraps because they change arguments too."""
    found: dict[OpOverload, None] = {}
    for node in program.graph.nodes:
        target = mutating_operator(node) or node.target
        if isinstance(target, OpOverload):
            found.setdefault(target)
    return list(found)


def mutating_operator(node: torch.fx.Node) -> OpOverload | None:
    """The operator inside torch's `auto_functionalized`, which stands for one that changes its arguments."""
    wraps = isinstance(node.target, HigherOrderOperator) and node.target.name().startswith("auto_functionalized")
    return node.args[0] if wraps and isinstance(node.args[0], OpOverload) else None
