"""Capture again where sizes of the first capture were equal to a number by accident; copies of captured programs.

first traced at seq = 5:   seq padded to chunks of 16   ->   chunks == 1, and the program holds for one chunk only
then at seq = 17:                                        ->   chunks != 1, and the program holds for any other number

torch treats a size of 1 apart (it broadcasts), and so it does with a size inside the program. `choose_trace_sizes` avoids
such accidents among the inputs; those of sizes inside the program show only in the guards. A program is copied so that one can
be translated, which changes it in place, and the other kept: nodes are copied, weights and fake tensors are shared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch.fx import GraphModule

from anyshape.capture.symbolic import Stopped
from anyshape.capture.trace_sizes import choose_trace_sizes
from anyshape.domain import Compare, Condition, Number, Sizes, dims_of, holds, negate
from anyshape.inputs import Declared
from anyshape.records.captured import Captured

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def without_accidents(
    first: Captured,
    declared: Declared,
    capture: Callable[[Sizes], Captured | Stopped],
    answers: Callable[[Sizes], bool],
) -> Captured:
    """The first capture, or one at other sizes that holds a size inside the program to a number at fewer places."""
    accidents = _find_accidents(first)
    if not accidents:
        return first
    sizes = choose_trace_sizes(declared, answers, *map(negate, accidents))
    if sizes is None or any(holds(each, sizes) for each in accidents):
        return first
    other = capture(sizes)
    if isinstance(other, Stopped) or len(_find_accidents(other)) >= len(accidents):
        return first
    return other


def _find_accidents(captured: Captured) -> list[Condition]:
    """Conditions of torch's own, not proved, that an expression equals a number; none where the user's code has one as well.

    An expression that equals the number at one size of each dim only is no accident: a loop or a constant is behind it.
    """
    pins = [
        guard
        for guard in captured.guards
        if guard.status != "proved"
        and isinstance(guard.condition, Compare)
        and guard.condition.op == "=="
        and isinstance(guard.condition.right, Number)
    ]
    traced_at = captured.regions[0].traced_at
    conditions = [guard.condition for guard in pins if guard.condition is not None]
    if any(guard.by_user for guard in pins) or not all(_holds_nearby(each, traced_at) for each in conditions):
        return []
    return list(dict.fromkeys(conditions))


def _holds_nearby(condition: Condition, sizes: Sizes) -> bool:
    """Whether the condition also holds where one of its dims is larger or smaller by 1."""
    moved = (
        {**sizes, name: sizes[name] + step} for name in dims_of(condition) for step in (1, -1) if sizes[name] + step > 0
    )
    return any(holds(condition, each) for each in moved)


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
