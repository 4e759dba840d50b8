"""A model with custom nodes -> a plan: pieces that onnxruntime runs, and calls of Python functions between them.

    a -> Mul -> mylib::Scale -> Add -> b     ->     [a -> Mul] , call mylib::Scale , [Add -> b]

A node goes into the earliest piece in which all that it reads is there, so there are as many pieces as custom nodes stand
one behind the other, and one more. `If` around a custom node is decided here, and its branch run in pieces; a custom node in
the body of a loop cannot be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyshape.runtime.child_messages import RuntimeRejected

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Piece:
    """A model of its own."""

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A custom node: the values that it takes (None where it leaves one out) and gives, with the dtype of each."""

    operator: str
    inputs: tuple[str | None, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[str, ...]
    dtypes: tuple[int | None, ...]


@dataclass(frozen=True)
class Choice:
    """An `If` with custom nodes inside."""

    condition: str
    then: Plan
    otherwise: Plan
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Steps in order, and the names of what comes out."""

    steps: tuple[Piece | Call | Choice, ...]
    outputs: tuple[str, ...]


def plan_pieces(model: onnx.ModelProto, operators: Collection[str]) -> Plan:
    """How to run a model whose nodes of these names are Python functions. Raises RuntimeRejected."""
    return _Planner(model, operators).plan(model.graph)


def operator_of(node: onnx.NodeProto) -> str:
    """`mylib::Scale`"""
    return f"{node.domain}::{node.op_type}"


class _Planner:
    def __init__(self, model: onnx.ModelProto, operators: Collection[str]) -> None:
        self._model = model
        self._operators = operators
        self._types = _types_of(model)
        self._weights = {tensor.name: tensor for graph in graphs_inside(model.graph) for tensor in graph.initializer}

    def plan(self, graph: onnx.GraphProto) -> Plan:
        levels = self._levels(graph)
        last = max(levels, default=0)
        outputs = tuple(value.name for value in graph.output)
        steps: list[Piece | Call | Choice] = []
        nodes = list(zip(graph.node, levels, strict=True))
        for level in range(last + 1):
            own = [node for node, at in nodes if at == level and not self._is_apart(node)]
            if own:
                others = [node for node, at in nodes if at > level or (at == level and self._is_apart(node))]
                read_later = set(outputs).union(*map(names_read, others))
                steps.append(self._piece(own, [name for name in _given(own) if name in read_later]))
            steps += [self._step(node) for node, at in nodes if at == level and self._is_apart(node)]
        return Plan(tuple(steps), outputs)

    def _levels(self, graph: onnx.GraphProto) -> list[int]:
        """How many custom nodes stand before each node, on the longest way to it."""
        reached: dict[str, int] = {}
        levels = []
        for node in graph.node:
            level = max((reached.get(name, 0) for name in names_read(node)), default=0)
            levels.append(level)
            reached |= dict.fromkeys(node.output, level + self._is_apart(node))
        return levels

    def _is_apart(self, node: onnx.NodeProto) -> bool:
        """Whether a node is, or has inside, what onnxruntime cannot run."""
        return operator_of(node) in self._operators or any(
            self._is_apart(inner) for graph in subgraphs(node) for inner in graph.node
        )

    def _step(self, node: onnx.NodeProto) -> Call | Choice:
        from onnx.helper import get_attribute_value

        if operator_of(node) in self._operators:
            return Call(
                operator_of(node),
                tuple(name or None for name in node.input),
                {attribute.name: _plain(get_attribute_value(attribute)) for attribute in node.attribute},
                tuple(node.output),
                tuple(self._types[name].tensor_type.elem_type if name in self._types else None for name in node.output),
            )
        if node.op_type != "If" or node.domain:
            inside = sorted({operator_of(each) for each in _nodes_inside(node) if operator_of(each) in self._operators})
            raise RuntimeRejected(
                f"{inside[0]} stands in the body of a {node.op_type}, which cannot be run in pieces", unsupported=True
            )
        branches = {attribute.name: self.plan(attribute.g) for attribute in node.attribute}
        return Choice(node.input[0], branches["then_branch"], branches["else_branch"], tuple(node.output))

    def _piece(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> Piece:
        import onnx

        given = set(_given(nodes))
        read = dict.fromkeys(name for node in nodes for name in sorted(names_read(node)) if name not in given)
        inputs = [name for name in read if name not in self._weights]
        graph = onnx.GraphProto(
            name=self._model.graph.name or "piece",
            node=nodes,
            input=[self._value(name) for name in inputs],
            output=[self._value(name) for name in outputs],
            initializer=[self._weights[name] for name in read if name in self._weights],
        )
        model = onnx.ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
            graph=graph,
        )
        return Piece(model.SerializeToString(), tuple(inputs), tuple(outputs))

    def _value(self, name: str) -> onnx.ValueInfoProto:
        import onnx

        if name not in self._types:
            raise RuntimeRejected(f"the file does not say of what type {name!r} is")
        return onnx.ValueInfoProto(name=name, type=self._types[name])


def names_read(node: onnx.NodeProto) -> set[str]:
    """What a node takes from the graph that it stands in, its subgraphs' readings included."""
    read = {name for name in node.input if name}
    for graph in subgraphs(node):
        made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        made |= set(_given(graph.node))
        read |= {value.name for value in graph.output}.union(*map(names_read, graph.node)) - made
    return read


def _given(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [name for node in nodes for name in node.output if name]


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def every_node(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of those inside its nodes."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from every_node(inner)


def _nodes_inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    for graph in subgraphs(node):
        for inner in graph.node:
            yield inner
            yield from _nodes_inside(inner)


def graphs_inside(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs_inside(inner)


def _types_of(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """The type of every value that the file records, and of those that follow from it."""
    import onnx

    types: dict[str, onnx.TypeProto] = {}
    try:
        known = onnx.shape_inference.infer_shapes(model)
    except Exception:  # more than 2 GB, or an operator that it does not know: what the file says must do
        known = model
    for graph in graphs_inside(known.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.WhichOneof("value") is not None:
                types[value.name] = value.type
    return types


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return [_plain(each) for each in value]
    return value
