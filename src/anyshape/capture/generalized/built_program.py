"""A graph that was built -> an exported program, with its guards, symbols and answers: as the symbolic rung gives it.

The graph is run by an interpreter inside a module that holds the user's module, so that weights keep their names and
every node keeps the user's line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Interpreter, traceback

from anyshape.capture.guards import user_lines

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
    """Sizes 0 and 1 are not set apart, and torch's warnings about its own internals are not heard."""
    from torch.fx.experimental import _config

    with ExitStack() as stack:
        stack.enter_context(_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
