"""Conditions on sizes by which torch chooses between a view and a copy: no number depends on them.

    y = x.transpose(0, 1).reshape(batch, -1)          at batch == 1, y is a view of x; at all other sizes it is a copy

Inside the operators below, torch compares sizes with numbers in order to find strides. Where the answer is "not equal",
the node holds at the other sizes as well, and the condition is not recorded. The answer "equal" always is: it may fix the
shape of a result. A later operator that compares the same size records its own condition. `contiguous` also compares
strides, expressions of several sizes, with one another.

On torch 2.11, `scaled_dot_product_attention` compares sizes of its mask as well, in order to choose a kernel: they all
compute the same.

A convolution of fake tensors asks whether sizes are 1 in order to choose the layout of its result: no answer is recorded.

A program that writes into tensors or reads strides depends on what is a view: these conditions are among its guards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from anyshape.intercept.patching import patched
from anyshape.leaves import LeafMode

__only_passes_on__ = True

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

_OPERATORS = frozenset(
    f"aten::{name}" for name in ("reshape", "linear", "matmul", "contiguous", "flatten", "scaled_dot_product_attention")
)
_CONTIGUOUS = "aten::contiguous"
_MAY_COPY = frozenset({"aten::reshape", _CONTIGUOUS, "aten::flatten"})
_READS_LAYOUT = frozenset({"aten::as_strided", "aten::as_strided_copy", "aten::sym_stride", "aten::sym_storage_offset"})

Term = tuple[Any, Any]
"""A condition of sympy, and torch's record of the line that it belongs to."""


@dataclass
class LayoutConditions:
    """The conditions that were not recorded, by their shape environment."""

    _found: list[tuple[Any, dict[Any, Any]]] = field(default_factory=list)
    _has_unclear_writes: bool = False

    def add(self, environment: Any, term: Any) -> None:
        """Keep a condition with the line that is running."""
        terms = self._terms(environment)
        if term not in terms:
            terms[term] = environment._get_sloc()

    def note_writes(self, program: ExportedProgram) -> None:
        """Look for writes into views that may be copies, in a program as torch.export made it: decomposing removes them."""
        self._has_unclear_writes = any(map(_writes_into_view_or_copy, _nodes_of(program)))

    def which_matter(self, program: ExportedProgram, environment: Any) -> tuple[Term, ...]:
        """The noted conditions, if the program writes into tensors or reads strides; else none."""
        matter = self._has_unclear_writes or depends_on_layout(program)
        return tuple(self._terms(environment).items()) if matter else ()

    def _terms(self, environment: Any) -> dict[Any, Any]:
        for known, terms in self._found:
            if known is environment:
                return terms
        self._found.append((environment, {}))
        return self._found[-1][1]


@contextmanager
def layout_conditions_apart(found: LayoutConditions) -> Iterator[None]:
    """Within this, conditions that only choose between a view and a copy go to `found`, and torch does not record them."""
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    original = ShapeEnv.evaluate_expr

    def evaluate(self: Any, expr: Any, hint: Any = None, *args: Any, **kwargs: Any) -> Any:
        is_comparison = isinstance(expr, sympy.core.relational.Relational) and hint is not None
        caller = _find_caller(sys._getframe(1)) if is_comparison else None
        is_convolution = _is_convolution(caller) and 1 in expr.args
        is_equality = isinstance(expr, (sympy.Eq, sympy.Ne))
        if not is_convolution and not (is_equality and _compares_for_strides(caller, expr)):
            return original(self, expr, hint, *args, **kwargs)
        with self.suppress_guards():
            answer = original(self, expr, hint, *args, **kwargs)
        if not is_convolution and bool(answer) is isinstance(expr, sympy.Eq):  # equal
            return original(self, expr, hint, *args, **kwargs)
        found.add(self, expr if answer else sympy.Not(expr))
        return answer

    with patched([(ShapeEnv, "evaluate_expr", evaluate)]):
        yield


def _find_caller(frame: FrameType | None) -> FrameType | None:
    """The frame that led to a comparison of sizes, without the code of torch that compares."""
    from torch.fx.experimental import sym_node, symbolic_shapes

    machinery = (sym_node.__file__, symbolic_shapes.__file__, __file__)
    while frame is not None and frame.f_code.co_filename in machinery:
        frame = frame.f_back
    return frame


def _compares_for_strides(frame: FrameType | None, comparison: Any) -> bool:
    """Whether torch's C++ code of one of these operators makes this comparison: no Python code runs between the two.

    One of two expressions of sizes counts for `contiguous` alone, whose result has the shape of its argument.
    """
    name = _operator_that_compares(frame)
    is_with_number = any(side.is_number for side in comparison.args)
    return name in _OPERATORS if is_with_number else name == _CONTIGUOUS


def _operator_that_compares(frame: FrameType | None) -> str | None:
    """The operator of torch whose C++ code a frame called; None where it called something else."""
    from torch import Tensor, _ops
    from torch._decomp import decompositions

    if frame is None:
        return None
    if frame.f_code is _ops.OpOverload.__call__.__code__:
        name: str = frame.f_locals["self"]._schema.name
        return name
    if (frame.f_code.co_filename, frame.f_code.co_name) == (decompositions.__file__, "matmul"):
        return "aten::matmul"  # its Python form, which expands and reshapes both tensors
    # This method asks whether its tensor is contiguous before it calls the operator; a mode for functions called it.
    is_mode = frame.f_code.co_name == "__torch_function__" or frame.f_code is LeafMode._run.__code__
    return _CONTIGUOUS if is_mode and frame.f_locals.get("func") is Tensor.contiguous else None


def _is_convolution(frame: FrameType | None) -> bool:
    """Whether the layout of a convolution of fake tensors is chosen."""
    from torch._subclasses import fake_impls

    return frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) == (fake_impls.__file__, "conv")


def depends_on_layout(program: ExportedProgram) -> bool:
    """Whether a program writes into tensors, where its decomposition left these writes in it, or reads their strides."""
    schemas = [getattr(node.target, "_schema", None) for node in _nodes_of(program)]
    return any(schema is not None and (schema.is_mutable or schema.name in _READS_LAYOUT) for schema in schemas)


def _writes_into_view_or_copy(node: Node) -> bool:
    """Whether a node writes into what sizes make a view or a copy: `x.reshape(n, -1).relu_()`, or a view of that."""
    import torch

    schema = getattr(node.target, "_schema", None)
    written = node.args[0] if schema is not None and schema.is_mutable and node.args else None
    while isinstance(written, torch.fx.Node) and (schema := getattr(written.target, "_schema", None)) is not None:
        if schema.name in _MAY_COPY:
            return True
        is_view = any(returned.alias_info is not None for returned in schema.returns)
        written = written.args[0] if is_view and written.args else None
    return False


def _nodes_of(program: ExportedProgram) -> Iterator[Node]:
    import torch

    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes
