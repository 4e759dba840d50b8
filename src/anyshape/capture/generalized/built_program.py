"""A graph that was built -> an exported program, with guards, symbols, open axes and outputs, as the symbolic rung gives it.

The graph is run by an interpreter inside a module that holds the user's module, so that weights keep their names and every node
keeps the user's line. Each dim is read from an axis of an input, or from a Python int that is one, solved for the dim.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.fx import Graph, Interpreter, traceback

from anyshape.capture.guards import user_lines
from anyshape.domain import Expr, Number
from anyshape.graphs.size_places import Place
from anyshape.inputs import Declared
from anyshape.intercept.fake_tensor_cache import small_cache_checks


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


Decompose = Callable[[ExportedProgram], ExportedProgram]


class Learned(torch.nn.Module):
    """A module whose forward is a graph; `module` is the user's, `made` holds constants that the graph mentions."""

    def __init__(self, graph: Graph, module: torch.nn.Module | None, constants: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        if module is not None:
            self.module = module
        for name, tensor in constants.items():
            self.register_buffer(name, tensor.detach(), persistent=False)
        object.__setattr__(self, "_learned", graph)

    def forward(self, *leaves: Any) -> Any:
        graph: Graph = self.__dict__["_learned"]
        with traceback.preserve_node_meta():
            return Interpreter(self, garbage_collect_values=False, graph=graph).run(*leaves)


def export_graph(
    learned: Learned, inputs: Sequence[Any], dynamic: Sequence[Any], decompose: Decompose
) -> tuple[ExportedProgram, ExportedProgram]:
    """The program as captured and as decomposed. Raises what torch.export raises."""
    with symbolic_sizes(), user_lines(), torch.no_grad():
        program = torch.export.export(learned, tuple(inputs), dynamic_shapes=(tuple(dynamic),), strict=False)
        return program, decompose(program)


@contextmanager
def symbolic_sizes() -> Iterator[None]:
    """Sizes 0 and 1 are not set apart, and torch's warnings about its own internals are silenced."""
    from torch.fx.experimental import _config

    with ExitStack() as stack:
        stack.enter_context(_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]
        stack.enter_context(small_cache_checks())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def places_of_dims(declared: Declared) -> tuple[Place, ...]:
    """Every axis of every open leaf, and every number, that depends on dims; `input` is the position of the leaf."""
    longer = "_" * max(map(len, declared.domain.names), default=1)  # than any dim's name: keys are no dims
    return tuple(
        Place(str(position), axis, size, f"leaf_{position}_{axis}{longer}")
        for position, sizes in enumerate(declared_sizes(declared))
        for axis, size in enumerate(sizes)
        if size is not None and not isinstance(size, Number)
    )
