"""Regions whose programs are alike are translated once, and run under one condition.

    a under c1, b under c2, a again under c3    ->    a under (c1 or not c2 and c3), b elsewhere

A model's code asks many questions about sizes that lead to the same program. What is proved and compared does not change: each
region keeps its guards and its sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node

from anyshape.domain import Condition, all_of, any_of, negate
from anyshape.records.captured import OutputTensor, Region, asserts, live_nodes

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_LARGEST_READ = 2**20  # bytes of a constant that are compared; a larger one is only like itself
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def merge_alike(regions: Sequence[Region], outputs: Sequence[OutputTensor]) -> tuple[Region, ...]:
    """Regions of which the first whose condition holds is run, else the last: as before, each program once.

    `outputs` are those of regions that have none of their own. Regions with loops are left as they are.
    """
    groups: dict[Any, list[int]] = {}
    for index, region in enumerate(regions):
        key = index if region.loops or len(regions) == 1 else (_key_of(region), region.outputs or tuple(outputs))
        groups.setdefault(key, []).append(index)
    if len(groups) == len(regions):
        return tuple(regions)
    order = sorted(groups.values(), key=lambda group: (len(regions) - 1 in group, group[0]))
    conditions = [region.condition for region in regions]
    return tuple(_merged(regions, order, place, conditions) for place in range(len(order)))


def _merged(regions: Sequence[Region], order: Sequence[list[int]], place: int, conditions: list[Condition]) -> Region:
    group = order[place]
    guards = dict.fromkeys(guard for index in group for guard in regions[index].guards)
    later = [index for other in order[place + 1 :] for index in other]
    parts = [
        all_of([*(negate(conditions[before]) for before in sorted(later) if before < index), conditions[index]])
        for index in group
    ]
    return replace(regions[group[0]], guards=tuple(guards), condition=any_of(parts))


def _key_of(region: Region) -> tuple[Any, ...]:
    """Equal for regions whose programs have the same nodes, on the same weights, with the same shapes in the same dims."""
    program = region.program
    signature = program.graph_signature
    given = [(spec.kind, _held_key(program, spec.target)) for spec in signature.input_specs]
    made = [(spec.kind, spec.target) for spec in signature.output_specs]
    return tuple(sorted(region.symbols.items())), tuple(given), tuple(made), _graph_key(program.graph_module)


def _held_key(program: ExportedProgram, target: str | None) -> Any:
    """Which weight an input is: by its place in memory, which all captures of a module share, or a constant by its content."""
    if target in program.state_dict:
        weight = program.state_dict[target]
        return target, weight.data_ptr(), weight.dtype, tuple(weight.shape), weight.stride()
    return _tensor_key(program.constants[target]) if target in program.constants else None


def _graph_key(module: GraphModule) -> tuple[Any, ...]:
    """The nodes that the outputs and assertions about values depend on, in order; other assertions are no part of a file."""
    live = live_nodes(module.graph, counts=asserts)
    nodes = [node for node in module.graph.nodes if node.op == "placeholder" or node in live]
    numbers = {node: number for number, node in enumerate(nodes)}
    return tuple(_node_key(node, numbers, module) for node in nodes)


def _node_key(node: Node, numbers: Mapping[Node, int], module: GraphModule) -> tuple[Any, ...]:
    target: Any = node.target
    if node.op == "get_attr":
        held = attrgetter(target)(module)
        target = _graph_key(held) if isinstance(held, GraphModule) else _tensor_key(held)
    elif node.op == "placeholder":
        target = None  # its name, which changes nothing
    return node.op, target, _value_key((node.args, node.kwargs), numbers), _value_key(node.meta.get("val"), {})


def _value_key(value: Any, numbers: Mapping[Node, int]) -> Any:
    """An argument, or the value of a node: numbers by their type and text, since -0.0 and 0, or 1 and True, differ."""
    if isinstance(value, Node):
        return Node, numbers[value]
    if isinstance(value, (list, tuple)):
        return tuple, *(_value_key(item, numbers) for item in value)
    if isinstance(value, Mapping):
        return dict, *((key, _value_key(item, numbers)) for key, item in value.items())
    if isinstance(value, slice):
        return slice, *(_value_key(item, numbers) for item in (value.start, value.stop, value.step))
    if isinstance(value, torch.Tensor):
        return torch.Tensor, value.dtype, tuple(_value_key(size, numbers) for size in value.shape)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return type(value), value.node.expr
    if isinstance(value, (int, float, complex, str)):
        return type(value), repr(value)
    return value if isinstance(value, Hashable) else id(value)


def _tensor_key(tensor: Any) -> Any:
    """Equal for one tensor, and for small ones with the same content."""
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided or tensor.nbytes > _LARGEST_READ:
        return id(tensor)
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.dtype, tuple(tensor.shape), content
