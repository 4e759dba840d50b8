"""Summarize an ONNX graph for the page: choices, loops, custom nodes, operators, weights, and lines of the source, as
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyshape.report import format_bytes
from anyshape.report.page.page_facts import Excerpt, excerpt_of, source_called

if TYPE_CHECKING:
    import onnx_ir as ir


_LINE = "anyshape.source"  # the metadata of a node: the line of the user's code that it comes from
_CHOICES, _LOOPS = ("If",), ("Loop", "Scan", "SequenceMap")
_STANDARD = ("", "ai.onnx", "ai.onnx.ml")
_MOST_LINES = 12
_MOST_PARTS = 60
_FOLDED = "(constants and folded weights)"
_MOST_SHOWN_LINES = 60
_MOST_WEIGHTS = 200


@dataclass(frozen=True)
class Part:
    """A node with graphs inside, or of another domain: what it is, the lines it comes from, what is inside it.

    `kind` is choice, loop or custom; `reads` are the inputs of the file on which it depends, `feeds` the outputs that depend
    on it. `bodies` are its graphs: a name, the number of nodes, and the parts inside.
    """

    kind: str
    name: str
    operator: str
    lines: tuple[str, ...]
    reads: tuple[str, ...]
    feeds: tuple[str, ...]
    bodies: tuple[tuple[str, int, tuple[Part, ...]], ...] = ()


@dataclass(frozen=True)
class Weights:
    """The weights of one module: how many tensors, elements and bytes."""

    module: str
    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True)
class GraphMap:
    """`lines` counts the nodes that come from each line of the user's code."""

    nodes: int
    parts: tuple[Part, ...]
    operators: tuple[tuple[str, int], ...]
    lines: tuple[tuple[str, int], ...]
    weights: tuple[Weights, ...]

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.weights)


def map_graph(model: ir.Model) -> GraphMap:
    """The map of a model."""
    nodes = list(_nodes_of(model.graph))
    operators = Counter(_operator(node) for node in nodes)
    lines = Counter(line for node in nodes if (line := node.metadata_props.get(_LINE)))
    reach = _Reach(model.graph)
    return GraphMap(
        nodes=len(nodes),
        parts=tuple(_parts(model.graph, reach))[:_MOST_PARTS],
        operators=tuple(operators.most_common()),
        lines=tuple(lines.most_common()),
        weights=tuple(_weights(model)),
    )


class _Reach:
    """On which inputs the nodes of the main graph depend, and which outputs depend on them."""

    def __init__(self, graph: ir.Graph) -> None:
        own = {value: (value.name or "",) for value in graph.inputs}
        self._before: dict[ir.Value, tuple[str, ...]] = dict(own)
        self._after: dict[ir.Value, set[str]] = {value: {value.name or ""} for value in graph.outputs}
        ordered = list(graph)
        for node in ordered:
            found = dict.fromkeys(name for value in _read(node) for name in self._before.get(value, ()))
            self._before.update(dict.fromkeys(node.outputs, tuple(found)))
        for node in reversed(ordered):
            fed = {name for value in node.outputs for name in self._after.get(value, ())}
            for value in _read(node):
                self._after.setdefault(value, set()).update(fed)

    def inputs(self, node: ir.Node) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for value in _read(node) for name in self._before.get(value, ())))

    def outputs(self, node: ir.Node) -> tuple[str, ...]:
        return tuple(sorted({name for value in node.outputs for name in self._after.get(value, ())}))


def _read(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads, the values that its inner graphs take from outside included."""
    yield from (value for value in node.inputs if value is not None)
    for _, graph in _graphs_of(node):
        for inner in graph:
            yield from _read(inner)
        yield from graph.outputs


def _graphs_of(node: ir.Node) -> list[tuple[str, ir.Graph]]:
    import onnx_ir as ir

    found: list[tuple[str, ir.Graph]] = []
    for name, attribute in node.attributes.items():
        if attribute.type is ir.AttributeType.GRAPH:
            found.append((name, attribute.as_graph()))
        elif attribute.type is ir.AttributeType.GRAPHS:
            found += [(name, graph) for graph in attribute.as_graphs()]
    return found


def _nodes_of(graph: ir.Graph) -> Iterator[ir.Node]:
    import onnx_ir as ir

    yield from ir.traversal.RecursiveGraphIterator(graph)


def _operator(node: ir.Node) -> str:
    return node.op_type if node.domain in _STANDARD else f"{node.domain}::{node.op_type}"


def _parts(graph: ir.Graph, reach: _Reach) -> Iterator[Part]:
    for node in graph:
        kind = _kind(node)
        if kind is None:
            continue
        bodies = tuple(
            (name, sum(1 for _ in _nodes_of(body)), tuple(_parts(body, reach))) for name, body in _graphs_of(node)
        )
        yield Part(
            kind,
            node.name or next((value.name for value in node.outputs if value.name), ""),
            _operator(node),
            tuple(_lines(node))[:_MOST_LINES],
            reach.inputs(node),
            reach.outputs(node),
            bodies,
        )


def _kind(node: ir.Node) -> str | None:
    if node.domain not in _STANDARD:
        return "custom"
    return "choice" if node.op_type in _CHOICES else "loop" if node.op_type in _LOOPS else None


def _lines(node: ir.Node) -> Iterable[str]:
    """The lines of the node and of all nodes inside it, each once, in the order of files and lines."""
    inside = [inner for _, graph in _graphs_of(node) for inner in _nodes_of(graph)]
    found = {line for each in (node, *inside) if (line := each.metadata_props.get(_LINE))}
    return sorted(found, key=lambda line: (line.rpartition(":")[0], int(line.rpartition(":")[2] or 0)))


def _weights(model: ir.Model) -> Iterator[Weights]:
    """The weights of each module, the largest first; what has no name of a module is one row."""
    by_module: dict[str, list[ir.TensorProtocol]] = {}
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                by_module.setdefault(_module_of(value), []).append(value.const_value)
    rows = [
        Weights(module, len(tensors), sum(tensor.size for tensor in tensors), sum(tensor.nbytes for tensor in tensors))
        for module, tensors in by_module.items()
    ]
    yield from sorted(rows, key=lambda row: -row.bytes)


def _module_of(value: ir.Value) -> str:
    """The module of a weight: by its name, or by the bias that is added to its product.

    A linear layer's matrix is transposed when it is written, and has no name of the module after that.
    """
    return _named_module(value) or next(filter(None, map(_named_module, _biases_of(value))), _FOLDED)


def _named_module(value: ir.Value) -> str:
    """`layer.linear.bias` is of `layer.linear`; "" for a name without a dot."""
    module, _, _ = (value.name or "").rpartition(".")
    return module if "/" not in module else ""


def _biases_of(weight: ir.Value) -> Iterator[ir.Value]:
    for product, _ in weight.uses():
        if product.op_type == "MatMul":
            for added, _ in product.outputs[0].uses():
                if added.op_type == "Add":
                    yield from (value for value in added.inputs if value is not None and value.is_initializer())


def graph_view(model: ir.Model | None) -> dict[str, Any]:
    """What the page shows of a model; nothing without one."""
    if model is None:
        return {"graph": None}
    graph = map_graph(model)
    parts_first = set(_lines_of(graph.parts))
    lines = sorted(graph.lines, key=lambda each: (each[0] not in parts_first, -each[1]))[:_MOST_SHOWN_LINES]
    places = [*(place for place, _ in lines), *parts_first]
    ids = {place: f"line-{number}" for number, place in enumerate(dict.fromkeys(places))}
    counts = dict(graph.lines)
    return {
        "graph": graph,
        "graph_inputs": [value.name or "" for value in model.graph.inputs],
        "graph_outputs": [value.name or "" for value in model.graph.outputs],
        "weights": [
            {"module": row.module, "tensors": row.tensors, "bytes": format_bytes(row.bytes)}
            for row in graph.weights[:_MOST_WEIGHTS]
        ],
        "lines": [
            {"id": number, "place": place, "nodes": counts.get(place, 0), "excerpt": _excerpt(place)}
            for place, number in sorted(ids.items(), key=lambda each: _order(each[0]))
        ],
        "line_ids": ids,
    }


def _lines_of(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield from part.lines
        for _, _, inside in part.bodies:
            yield from _lines_of(inside)


def _excerpt(place: str) -> Excerpt:
    source = source_called(place)
    return Excerpt(place, 0, "", ()) if source is None else excerpt_of(source)


def _order(place: str) -> tuple[str, int]:
    source = source_called(place)
    return (place, 0) if source is None else (source.file, source.line)
