"""Regions of a capture -> one graph: each region's nodes in a branch of `If`, chosen by the sizes.

    x -> program where b > 3        x -> Shape -> is b > 3 -> If(then: the first's nodes, else: the second's)
    x -> program elsewhere     ->   weights stand once, outside the branches

Names inside a branch begin with its region, since ONNX has one space of names for a graph and its branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from anyshape.domain import Condition, Expr, Number, format_expr, substitute
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.graphs.places import Place, places_of, readings_of
from anyshape.inputs import Declared
from anyshape.records.captured import Answer
from anyshape.records.exported import Exported


def join_regions(parts: Sequence[Exported], conditions: Sequence[Condition], declared: Declared) -> Exported:
    """One model that answers as the first part whose condition holds; the last part answers where no other does."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    graph = first.model.graph
    weights = _Weights(graph)
    types = [value.type for value in graph.outputs]
    bodies = [_take_body(part.model.graph, index, graph, weights) for index, part in enumerate(parts)]
    sizes = _SizeTests(graph, declared)
    chosen = bodies[-1]
    for index in range(len(parts) - 2, -1, -1):
        chosen = _choice(sizes.test(conditions[index]), bodies[index], chosen)
    nodes = list(chosen)
    outputs = list(chosen.outputs)
    chosen.outputs.clear()
    chosen.remove(nodes)
    graph.extend([*sizes.nodes, *nodes])
    for value in (*weights.added, *sizes.initializers):
        graph.register_initializer(value)
    answers = _common_answers(parts)
    for output, (name, answer), kind in zip(outputs, answers, types, strict=True):
        output.name, output.type = name, kind
        output.shape = None if answer.any_rank else ir.Shape([_written(axis) for axis in answer.axes])
        graph.outputs.append(output)
    return replace(first, outputs=answers)


class _Weights:
    """The initializers of all regions, each stored once: the same name and values, or else a name of its own."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._known = {_content(value): value for value in graph.initializers.values()}
        self._names: set[str | None] = set(graph.initializers)
        self.added: list[ir.Value] = []

    def take(self, value: ir.Value, region: int) -> ir.Value:
        key = _content(value)
        if key not in self._known:
            name = value.name if value.name not in self._names else f"region_{region}/{value.name}"
            copy = ir.Value(name=name, type=value.type, shape=value.shape, const_value=value.const_value)
            self._known[key] = copy
            self._names.add(name)
            self.added.append(copy)
        return self._known[key]


def _content(value: ir.Value) -> tuple[str, tuple[int, ...], bytes]:
    """What makes two weights one: dtype, shape and bytes."""
    tensor = value.const_value
    assert tensor is not None
    return (str(tensor.dtype), tuple(tensor.shape.numpy()), tensor.tobytes())


def _take_body(source: ir.Graph, index: int, graph: ir.Graph, weights: _Weights) -> ir.Graph:
    """A region's nodes as a graph of their own, reading the inputs and weights outside."""
    if source is not graph:
        for own, outer in zip(source.inputs, graph.inputs, strict=True):
            ir.convenience.replace_all_uses_with(own, outer)
        for value in list(source.initializers.values()):
            ir.convenience.replace_all_uses_with(value, weights.take(value, index))
    nodes, outputs = list(source), list(source.outputs)
    source.outputs.clear()
    source.remove(nodes)
    body = ir.Graph((), outputs, nodes=nodes, name=f"region_{index}")
    for node in ir.traversal.RecursiveGraphIterator(body):
        node.name = f"region_{index}/{node.name}"
        for value in node.outputs:
            value.name = f"region_{index}/{value.name}"
    return body


def _choice(test: ir.Value, then: ir.Graph, otherwise: ir.Graph) -> ir.Graph:
    node = ir.node(
        "If",
        [test],
        {"then_branch": then, "else_branch": otherwise},
        num_outputs=len(then.outputs),
        name=f"choose_{then.name}",
    )
    for index, value in enumerate(node.outputs):
        value.name = f"choose_{then.name}/{index}"
    return ir.Graph((), list(node.outputs), nodes=[node], name=f"after_{then.name}")


class _SizeTests:
    """Nodes that tell from the inputs' shapes whether a condition on the dims holds."""

    def __init__(self, graph: ir.Graph, declared: Declared) -> None:
        self._inputs = {value.name: value for value in graph.inputs}
        axes = {leaf.name: leaf.axes for leaf in declared.tensor_leaves}
        self._places: dict[str, Place] = {place.key: place for place in places_of(axes)}
        found = readings_of(declared.domain, tuple(self._places.values()))
        self._readings: Mapping[str, Expr] = {reading.dim: reading.value for reading in found}
        taken = {value.name for value in (*graph.inputs, *graph.initializers.values()) if value.name}
        self._arithmetic = Arithmetic(self._axis, taken)

    @property
    def nodes(self) -> list[ir.Node]:
        return self._arithmetic.nodes

    @property
    def initializers(self) -> list[ir.Value]:
        return self._arithmetic.initializers

    def test(self, condition: Condition) -> ir.Value:
        excess = self._arithmetic.excess(substitute(condition, self._readings))
        test = self._arithmetic.add("LessOrEqual", excess, self._arithmetic.constant([0]))
        test.type = ir.TensorType(ir.DataType.BOOL)
        return test

    def _axis(self, key: str) -> ir.Value:
        place = self._places[key]
        return self._arithmetic.add("Shape", self._inputs[place.input], start=place.axis, end=place.axis + 1)


def _common_answers(parts: Sequence[Exported]) -> tuple[tuple[str, Answer], ...]:
    """What can be said of the answers of all regions: an axis on which they differ follows no one expression."""
    merged = []
    for column in zip(*(part.outputs for part in parts), strict=True):
        name, answer = column[0]
        others = [other.axes for _, other in column]
        if any(len(axes) != len(answer.axes) for axes in others):
            merged.append((name, replace(answer, axes=(), any_rank=True)))
        else:
            axes = tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*others, strict=True))
            merged.append((name, replace(answer, axes=axes)))
    return tuple(merged)


def _written(axis: Expr | None) -> int | str | None:
    return axis.value if isinstance(axis, Number) else format_expr(axis) if axis is not None else None
