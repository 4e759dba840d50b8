"""Call torch.export with symbols for all open axes: the settings for it, and each symbol as an expression of the user's dims.

All rungs that capture share this: the symbolic one exports the user's module, the others what they learned from traces.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from anyshape.domain import Expr, Number
from anyshape.inputs import Declared
from anyshape.intercept.older_torch import rules_of_later_torch
from anyshape.intercept.quick_tracing import lines_read_late, memory_formats_left_out, small_cache_checks

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Decompose = Callable[["ExportedProgram"], "ExportedProgram"]


@contextmanager
def symbolic_sizes() -> Iterator[None]:
    """Enter around torch.export: sizes 0 and 1 get symbols as others do; torch's advice on its own internals is silenced."""
    from torch.fx.experimental import _config

    with ExitStack() as stack:
        stack.enter_context(_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]
        stack.enter_context(rules_of_later_torch())
        stack.enter_context(small_cache_checks())
        stack.enter_context(lines_read_late())
        stack.enter_context(memory_formats_left_out())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def open_axes(declared: Declared) -> tuple[Any, ...]:
    """What torch.export takes as dynamic shapes, one entry a leaf."""
    from torch.export import Dim

    return tuple(
        Dim.AUTO
        if leaf.number is not None
        else {axis: Dim.AUTO for axis, size in enumerate(leaf.axes) if not isinstance(size, Number)}
        for leaf in declared.open_leaves
    )


def declared_sizes(declared: Declared) -> list[tuple[Expr | None, ...]]:
    """The expressions of every open leaf, as `symbols_of` takes them."""
    return [(leaf.number,) if leaf.number is not None else leaf.axes for leaf in declared.open_leaves]


def symbols_of(program: ExportedProgram, sizes: Sequence[tuple[Expr | None, ...]]) -> dict[str, Expr]:
    """Each size symbol of the program's inputs; `sizes` has the expressions of each input's axes, or of its number."""
    symbols: dict[str, Expr] = {}
    for value, expressions in zip(input_values(program), sizes, strict=True):
        for size, expression in zip(getattr(value, "shape", (value,)), expressions, strict=True):
            symbol = symbol_of(size)
            if expression is not None and symbol is not None:
                symbols[symbol] = expression
    return symbols


def input_values(program: ExportedProgram) -> list[Any]:
    """The values of the program's inputs, as torch.export saw them."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [nodes[str(name)].meta["val"] for name in program.graph_signature.user_inputs]


def symbol_of(size: Any) -> str | None:
    """The name of the symbol that torch.export gave to a size; None for a number and for an expression."""
    # `_expr` is the term as first written; `expr` would be what torch replaced the symbol by.
    term = getattr(getattr(size, "node", None), "_expr", None)
    return term.name if term is not None and term.is_Symbol else None
