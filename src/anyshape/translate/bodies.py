"""Parts of one file: a model's nodes as a graph that reads inputs and weights from outside, each weight stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from anyshape.domain import Compare, Domain, Expr, decide, format_expr
from anyshape.records.captured import OutputTensor
from anyshape.records.export import Exported

_SOLVER_MS = 200


class Weights:
    """The initializers of all parts, each stored once: the same name and values, or else a name of its own.

    `added` are those that the graph does not have yet.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self._known = {_content(value): value for value in graph.initializers.values()}
        self._names: set[str | None] = set(graph.initializers)
        self.added: list[ir.Value] = []

    def take(self, value: ir.Value, label: str) -> ir.Value:
        """The value that replaces this one; a name that is taken gets the part's label."""
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
    """A model's nodes as a graph of their own; `inputs` is, by name, what they read instead of the model's inputs.

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


def common_outputs(parts: Sequence[Exported], domains: Sequence[Domain] = ()) -> tuple[tuple[str, OutputTensor], ...]:
    """The outputs of all parts as one: an axis on which they differ follows no one expression.

    `domains` has the sizes at which each part is run, if they are known: parts do not differ on an axis for which the
    expression of one part has the value of every other part's at that part's sizes.
    """
    merged = []
    for column in zip(*(part.outputs for part in parts), strict=True):
        name, output = column[0]
        others = [other.axes for _, other in column]
        if any(len(axes) != len(output.axes) for axes in others):
            merged.append((name, replace(output, axes=(), any_rank=True)))
        else:
            axes = tuple(_common_axis(sizes, domains) for sizes in zip(*others, strict=True))
            merged.append((name, replace(output, axes=axes)))
    return tuple(merged)


def _common_axis(sizes: Sequence[Expr | None], domains: Sequence[Domain]) -> Expr | None:
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    if len(set(known)) == 1:
        return known[0]
    places = list(zip(known, domains, strict=True)) if domains else []
    shortest_first = sorted(set(known), key=lambda size: (len(format_expr(size)), format_expr(size)))
    fitting = (each for each in shortest_first if all(_is_same(each, size, domain) for size, domain in places))
    return next(fitting, None) if places else None


def _is_same(one: Expr, other: Expr, domain: Domain) -> bool:
    return one == other or decide(domain, Compare("==", one, other), timeout_ms=_SOLVER_MS).proved
