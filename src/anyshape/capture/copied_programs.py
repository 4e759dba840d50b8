"""Copy a captured program, so that one can be translated, which changes it in place, and the other kept.

Nodes are copied; weights, fake tensors and the shape environment are shared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from torch.fx import GraphModule

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """The same program with nodes of its own, those of nested graphs included."""
    copied = copy.copy(program)
    copied._graph_module = _copy_graph(program.graph_module)
    copied._graph_signature = copy.deepcopy(program.graph_signature)
    copied._state_dict = dict(program.state_dict)
    copied._constants = dict(program.constants)
    return copied


def _copy_graph(module: GraphModule) -> GraphModule:
    copied = GraphModule(module, copy.deepcopy(module.graph), class_name=type(module).__name__)
    copied.meta.update(module.meta)
    for name, child in module.named_children():
        if isinstance(child, GraphModule) and hasattr(copied, name):
            setattr(copied, name, _copy_graph(child))
    return copied
