"""A tree of decisions on values -> one graph: questions computed first, then `If`, or a number passed on as a scalar.

    Choice(question, yes, no)     ->   question's nodes -> If(then: yes, else: no)
    ReadInt(question, name, ...)  ->   question's nodes -> the number, in place of the length of the input `name` of `then`;
                                       where it is below zero, its distance from zero and `below`
    Repeat(question, name, ...)   ->   Loop that evaluates the question for 0, 1, 2, ... until the decision changes; as above
    FailingNode                   ->   a Gather out of bounds, named with the model's message

Every part is a whole model from the user's inputs on; what several of them compute is shared afterwards (`optimize`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import is_about
from anyshape.inputs import Declared
from anyshape.records.captured import OutputTensor
from anyshape.records.export import Exported
from anyshape.translate import Weights, choose, common_outputs, take_body, take_nodes
from anyshape.translate.names import written_axis


@dataclass(frozen=True)
class Choice:
    """One of two trees, by a truth that the question computes."""

    question: Exported
    yes: Tree
    no: Tree


@dataclass(frozen=True)
class ReadInt:
    """Trees whose models have one more input, `name`, as long as the number that the question computes.

    `below` has the models for numbers below zero, where that input is as long as the number is far from zero; None if
    the number is never below zero.
    """

    question: Exported
    name: str
    then: Tree
    below: Tree | None = None


@dataclass(frozen=True)
class Repeat:
    """A tree whose models have one more input, `name`, as long as the question keeps its answer.

    The question's model has that input too: it computes what is asked after so many answers.
    """

    question: Exported
    name: str
    decision: bool
    then: Tree


@dataclass(frozen=True)
class FailingNode:
    """A side of a choice on which the model raises: written as a node that fails when it runs, named with `message`."""

    message: str


Tree = Exported | Choice | ReadInt | Repeat | FailingNode
_Side = tuple[Tree, Mapping[str, ir.Value]]
"""A tree, and the values that its models read in place of their inputs."""


def compose(tree: Tree, declared: Declared) -> Exported:
    """One model of the whole tree, its outputs named as declared. The parts' models are used up."""
    parts = _answering(tree)
    first = parts[0].model
    tensors = tuple((name, _known(tensor, declared)) for name, tensor in common_outputs(parts))
    names = declared.name_outputs([tensor.path for _, tensor in tensors])
    named = tuple(zip(names, (tensor for _, tensor in tensors), strict=True))
    graph = ir.Graph([], [], nodes=[], name="decided", opset_imports=dict(first.graph.opset_imports))
    own = {value.name: value for value in first.graph.inputs}
    for leaf in declared.open_leaves:
        given = own[leaf.name]
        graph.inputs.append(ir.Value(name=given.name, type=given.type, shape=given.shape))
    types = [value.type for value in first.graph.outputs]
    composer = _Composer(graph, types, [tensor for _, tensor in named], _numbers(tree))
    outputs = composer.write(tree, {value.name or "": value for value in graph.inputs}, composer.nodes)
    graph.extend(composer.nodes)
    for value in (*composer.weights.added, *composer.constants):
        graph.register_initializer(value)
    for output, (name, tensor) in zip(outputs, named, strict=True):
        output.name = name
        output.shape = None if tensor.any_rank else ir.Shape([written_axis(axis) for axis in tensor.axes])
        graph.outputs.append(output)
    model = ir.Model(graph, ir_version=first.ir_version, producer_name=first.producer_name)
    model.functions.update({key: function for part in parts for key, function in part.model.functions.items()})
    return replace(parts[0], model=model, input_names=tuple(v.name or "" for v in graph.inputs), outputs=named)


def _answering(tree: Tree) -> list[Exported]:
    """The models that answer, in order."""
    if isinstance(tree, Exported):
        return [tree]
    if isinstance(tree, Choice):
        return [*_answering(tree.yes), *_answering(tree.no)]
    if isinstance(tree, ReadInt) and tree.below is not None:
        return [*_answering(tree.then), *_answering(tree.below)]
    return _answering(tree.then) if isinstance(tree, (ReadInt, Repeat)) else []


def _numbers(tree: Tree) -> set[str]:
    """The names of inputs of parts that are numbers."""
    if isinstance(tree, Choice):
        return _numbers(tree.yes) | _numbers(tree.no)
    if isinstance(tree, (ReadInt, Repeat)):
        below = tree.below if isinstance(tree, ReadInt) else None
        return {tree.name} | _numbers(tree.then) | (_numbers(below) if below is not None else set())
    return set()


def _known(tensor: OutputTensor, declared: Declared) -> OutputTensor:
    """The output without axes that follow a number of the model's own."""
    names = set(declared.domain.names)
    return replace(
        tensor, axes=tuple(axis if axis is not None and is_about(axis, names) else None for axis in tensor.axes)
    )


class _Composer:
    """The nodes of one graph, while they are written."""

    def __init__(
        self, graph: ir.Graph, types: list[ir.TypeProtocol | None], tensors: list[OutputTensor], numbers: set[str]
    ) -> None:
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Value] = []
        self.weights = Weights(graph)
        self._types = types
        self._tensors = tensors
        self._labels = 0
        self._numbers = numbers

    def write(self, tree: Tree, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
        """The tree's nodes after those that are there; gives their outputs."""
        if isinstance(tree, Exported):
            return self._inline(tree, scope, nodes)
        if isinstance(tree, Repeat):
            count = self._number(self._count(tree, scope, nodes), nodes)
            return self.write(tree.then, {**scope, tree.name: count}, nodes)
        if isinstance(tree, ReadInt):
            return self._write_number(tree, scope, nodes)
        assert isinstance(tree, Choice)
        truth = self._inline(tree.question, scope, nodes)[0]
        return self._choose(truth, (tree.yes, scope), (tree.no, scope), nodes)

    def _write_number(self, tree: ReadInt, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
        number = self._number(self._inline(tree.question, scope, nodes)[0], nodes)
        if tree.below is None:
            return self.write(tree.then, {**scope, tree.name: number}, nodes)
        is_below = self._add(nodes, "Less", [number, self._constant([0])])
        is_below = self._add(nodes, "Reshape", [is_below, self._constant([])])
        is_below.type = ir.TensorType(ir.DataType.BOOL)
        distance = self._add(nodes, "Neg", [number])
        distance.type = ir.TensorType(ir.DataType.INT64)
        below, then = ({**scope, tree.name: value} for value in (distance, number))
        return self._choose(is_below, (tree.below, below), (tree.then, then), nodes)

    def _choose(self, truth: ir.Value, yes: _Side, no: _Side, nodes: list[ir.Node]) -> list[ir.Value]:
        then, otherwise = (self._branch(side, truth, is_yes) for side, is_yes in ((yes, True), (no, False)))
        node = choose(truth, then, otherwise)
        nodes.append(node)
        for output, kind in zip(node.outputs, self._types, strict=True):
            output.type = kind
        return list(node.outputs)

    def _label(self) -> str:
        self._labels += 1
        return f"part_{self._labels}"

    def _inline(self, part: Exported, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
        for given in part.model.graph.inputs:
            if given.name in self._numbers:
                replace_length(given, scope[given.name])
        body = take_body(part.model.graph, self._label(), scope, self.weights)
        own, outputs = take_nodes(body)
        nodes += own
        return outputs

    def _branch(self, side: _Side, truth: ir.Value, is_yes: bool) -> ir.Graph:
        tree, scope = side
        nodes: list[ir.Node] = []
        outputs = (
            self._fail(tree, truth, is_yes, nodes) if isinstance(tree, FailingNode) else self.write(tree, scope, nodes)
        )
        return ir.Graph((), outputs, nodes=nodes, name=self._label())

    def _count(self, tree: Repeat, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> ir.Value:
        """How often the question has this decision before it has the other: the counter of a loop that goes on while it is."""
        number = ir.TensorType(ir.DataType.INT64)
        truth = ir.TensorType(ir.DataType.BOOL)
        label = self._label()
        trip = ir.Value(name=f"{label}/trip", type=number, shape=ir.Shape([]))
        going = ir.Value(name=f"{label}/going", type=truth, shape=ir.Shape([]))
        before = ir.Value(name=f"{label}/before", type=number, shape=ir.Shape([1]))
        own: list[ir.Node] = []
        asked = self._inline(tree.question, {**scope, tree.name: self._number(trip, own)}, own)[0]
        again = self._add(own, "Identity" if tree.decision else "Not", [asked])
        count = self._add(own, "Reshape", [trip, self._constant([1])])
        again.type, count.type = truth, number
        body = ir.Graph([trip, going, before], [again, count], nodes=own, name=f"{label}_body")
        node = ir.node(
            "Loop", [None, self._constant(True), self._constant([0])], {"body": body}, num_outputs=1, name=label
        )
        node.outputs[0].name, node.outputs[0].type = f"{label}/count", number
        nodes.append(node)
        return node.outputs[0]

    def _number(self, number: ir.Value, nodes: list[ir.Node]) -> ir.Value:
        """The number as a vector of one, which is what Shape gives of a vector of that length."""
        vector = self._add(nodes, "Reshape", [number, self._constant([1])])
        vector.type, vector.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
        return vector

    def _fail(self, tree: FailingNode, truth: ir.Value, is_yes: bool, nodes: list[ir.Node]) -> list[ir.Value]:
        """Nodes that fail where they run. They read the truth, so that no optimizer runs them when the file is loaded."""
        one = self._add(
            nodes, "Reshape", [self._add(nodes, "Cast", [truth], {"to": ir.DataType.INT64}), self._constant([1])]
        )
        index = one if is_yes else self._add(nodes, "Sub", [self._constant([1]), one])
        zero = self._add(nodes, "Gather", [self._constant([0]), index], name=f"anyshape AS419: {tree.message}")
        outputs = []
        for kind, tensor in zip(self._types, self._tensors, strict=True):
            assert kind is not None
            shape = self._add(nodes, "Gather", [zero, self._constant([0] * len(tensor.axes))])
            filled = ir.Tensor(np.zeros(1, dtype=kind.dtype.numpy()), dtype=kind.dtype)
            outputs.append(self._add(nodes, "ConstantOfShape", [shape], {"value": filled}))
            outputs[-1].type = kind
        return outputs

    def _add(
        self,
        nodes: list[ir.Node],
        op_type: str,
        inputs: list[ir.Value],
        attributes: dict[str, object] | None = None,
        name: str = "",
    ) -> ir.Value:
        label = f"{self._label()}/{op_type.lower()}"
        node = ir.node(op_type, inputs, attributes, name=name or label)  # type: ignore[arg-type]
        node.outputs[0].name = label
        nodes.append(node)
        return node.outputs[0]

    def _constant(self, values: list[int] | bool) -> ir.Value:
        array: np.ndarray[Any, Any] = np.asarray(values, dtype=np.bool_ if isinstance(values, bool) else np.int64)
        made = ir.Value(
            name=f"{self._label()}/constant",
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            shape=ir.Shape(array.shape),
            const_value=ir.Tensor(array),
        )
        self.constants.append(made)
        return made


def replace_length(given: ir.Value, number: ir.Value) -> None:
    """Put `number`, an int64 vector of one, wherever a graph reads the length of its input `given`.

    Raises TypeError where the graph reads anything else of it.
    """
    pending = [(given, number)]
    while pending:
        value, length = pending.pop()
        for use in tuple(value.uses()):
            node = use.node
            output = node.outputs[0]
            if node.op_type == "Shape":
                _rewrite(node, "Identity", length)
            elif node.op_type == "Identity" and not output.is_graph_output():
                pending.append((output, length))
            elif node.op_type == "Reshape" and use.idx == 0:
                _rewrite(node, "Add", length)
                pending.append((output, output))
            else:
                raise TypeError(f"a number is read as a tensor by {node.op_type}")


def _rewrite(node: ir.Node, op_type: str, number: ir.Value) -> None:
    node.op_type = op_type
    node.attributes.clear()
    node.replace_input_with(0, number)
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
