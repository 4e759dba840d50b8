"""Parts of one file: a model's nodes as a graph that reads inputs and weights from outside, each weight stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from anyshape.records.captured import Answer
from anyshape.records.exported import Exported


class Weights:
    """The initializers of all parts, each stored once: the same name and values, or else a name of its own.

    `added` are those that the graph does not have yet.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self._known = {_content(value): value for value in graph.initializers.values()}
        self._names: set[str | None] = set(graph.initializers)
        self.added: list[ir.Value] = []

    def take(self, value: ir.Value, label: str) -> ir.Value:
        """The value that stands for this one; a name that is taken gets the part's label."""
        key = _content(value)
        if key not in self._known:
            name = value.name if value.name not in self._names else f"{label}/{value.name}"
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


def take_body(source: ir.Graph, label: str, inputs: Mapping[str, ir.Value], weights: Weights) -> ir.Graph:
    """A model's nodes as a graph of their own; `inputs` says by name what they read instead of the model's inputs.

    Names begin with the label, since ONNX has one space of names for a graph and its branches.
    """
    _make_outputs(source)
    for own in source.inputs:
        outer = inputs[own.name or ""]
        if outer is not own:
            ir.convenience.replace_all_uses_with(own, outer)
    for value in list(source.initializers.values()):
        outer = weights.take(value, label)
        if outer is not value:
            ir.convenience.replace_all_uses_with(value, outer)
    nodes, outputs = list(source), list(source.outputs)
    source.outputs.clear()
    source.remove(nodes)
    body = ir.Graph((), outputs, nodes=nodes, name=label)
    for node in ir.traversal.RecursiveGraphIterator(body):
        node.name = f"{label}/{node.name}"
        for value in node.outputs:
            value.name = f"{label}/{value.name}"
    return body


def _make_outputs(graph: ir.Graph) -> None:
    """Every output is made by a node: what a branch gives cannot be a weight, or an input given back."""
    for index, value in enumerate(list(graph.outputs)):
        if value.producer() is None:
            node = ir.node("Identity", [value], name=f"give_{value.name}")
            made = node.outputs[0]
            made.name, made.type, made.shape = f"{value.name}_given", value.type, value.shape
            graph.append(node)
            if value.is_initializer():  # its name is to be the output's
                graph.initializers.pop(value.name or "")
                value.name = f"{value.name}_constant"
                graph.initializers[value.name] = value
            graph.outputs[index] = made


def take_nodes(body: ir.Graph) -> tuple[list[ir.Node], list[ir.Value]]:
    """The nodes and outputs of a graph that is no longer needed."""
    nodes, outputs = list(body), list(body.outputs)
    body.outputs.clear()
    body.remove(nodes)
    return nodes, outputs


def choose(test: ir.Value, then: ir.Graph, otherwise: ir.Graph) -> ir.Node:
    """If(test, then, otherwise), named after its first branch."""
    node = ir.node(
        "If",
        [test],
        {"then_branch": then, "else_branch": otherwise},
        num_outputs=len(then.outputs),
        name=f"choose_{then.name}",
    )
    for index, value in enumerate(node.outputs):
        value.name = f"choose_{then.name}/{index}"
        value.type = then.outputs[index].type
    return node


def common_answers(parts: Sequence[Exported]) -> tuple[tuple[str, Answer], ...]:
    """What can be said of the answers of all parts: an axis on which they differ follows no one expression."""
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
