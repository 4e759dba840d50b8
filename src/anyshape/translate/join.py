"""Regions of a capture -> one graph: each region's nodes in a branch of `If`, chosen by the sizes.

    x -> model under b > 3          x -> Shape -> b > 3 -> If
    x -> model otherwise      ->         then: nodes of the first, else: nodes of the second
                                    weights of both stand once, outside
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from anyshape.domain import Condition, Expr, substitute
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.graphs.places import places_of, readings_of
from anyshape.inputs import Declared
from anyshape.records.exported import Exported


def join_regions(parts: Sequence[Exported], conditions: Sequence[Condition], declared: Declared) -> Exported:
    """One model that answers as the first part whose condition holds; the last one answers where no other does."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    graph = first.model.graph
    weights = _Weights(graph)
    bodies = [_body(part, index, graph, weights) for index, part in enumerate(parts)]
    sizes = _Sizes(graph, declared, {name for name in weights.names if name})
    chosen = bodies[-1]
    for body, condition in reversed(list(zip(bodies[:-1], conditions, strict=False))):
        chosen = _either(sizes.holds(condition), body, chosen, first)
    for node in (*sizes.nodes, *_nodes_of(chosen)):
        graph.append(node)
    for initializer in sizes.initializers:
        graph.register_initializer(initializer)
    graph.outputs.clear()
    for value, name in zip(chosen.outputs, first.output_names, strict=True):
        value.name = name
        graph.outputs.append(value)
    return replace(first, outputs=_common_answers(parts))
