"""A tree of decisions on values -> one graph: questions computed first, then `If`, or a number given on as a length.

    Choice(question, yes, no)     ->   question's nodes -> If(then: yes, else: no)
    Number(question, name, then)  ->   question's nodes -> ConstantOfShape, in place of the input `name` of `then`
    Repeat(question, name, ...)   ->   Loop that asks the question of 0, 1, 2, ... until its answer changes; then as above
    Refusal                       ->   a Gather out of bounds, named with what the model said

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
from anyshape.records.captured import Answer
from anyshape.records.exported import Exported
from anyshape.translate.bodies import Weights, choose, common_answers, take_body, take_nodes
from anyshape.translate.join import written_axis


@dataclass(frozen=True)
class Choice:
    """One of two trees, by a truth that the question computes."""

    question: Exported
    yes: Tree
    no: Tree


@dataclass(frozen=True)
class Number:
    """A tree whose models have one more input, `name`, as long as the number that the question computes."""

    question: Exported
    name: str
    then: Tree


@dataclass(frozen=True)
class Repeat:
    """A tree whose models have one more input, `name`, as long as the question keeps its answer.

    The question's model has that input too: it computes what is asked after so many answers.
    """

    question: Exported
    name: str
    answer: bool
    then: Tree


@dataclass(frozen=True)
class Refusal:
    """Values at which the model itself raises: the file does so too, in these words."""

    message: str


Tree = Exported | Choice | Number | Repeat | Refusal


def compose(tree: Tree, declared: Declared) -> Exported:
    """One model of the whole tree, its outputs named as declared. The parts' models are used up."""
    parts = _answering(tree)
    first = parts[0].model
    answers = tuple((name, _known(answer, declared)) for name, answer in common_answers(parts))
    names = declared.name_outputs([answer.path for _, answer in answers])
    named = tuple(zip(names, (answer for _, answer in answers), strict=True))
    graph = ir.Graph([], [], nodes=[], name="decided", opset_imports=dict(first.graph.opset_imports))
    own = {value.name: value for value in first.graph.inputs}
    for leaf in declared.open_leaves:
        given = own[leaf.name]
        graph.inputs.append(ir.Value(name=given.name, type=given.type, shape=given.shape))
    composer = _Composer(graph, [value.type for value in first.graph.outputs], [answer for _, answer in named])
    outputs = composer.write(tree, {value.name or "": value for value in graph.inputs}, composer.nodes)
    graph.extend(composer.nodes)
    for value in (*composer.weights.added, *composer.constants):
        graph.register_initializer(value)
    for output, (name, answer) in zip(outputs, named, strict=True):
        output.name = name
        output.shape = None if answer.any_rank else ir.Shape([written_axis(axis) for axis in answer.axes])
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
    return _answering(tree.then) if isinstance(tree, (Number, Repeat)) else []


def _known(answer: Answer, declared: Declared) -> Answer:
    """The answer without axes that follow a number of the model's own."""
    names = set(declared.domain.names)
    return replace(
        answer, axes=tuple(axis if axis is not None and is_about(axis, names) else None for axis in answer.axes)
    )


class _Composer:
    """The nodes of one graph, while they are written."""

    def __init__(self, graph: ir.Graph, types: list[ir.TypeProtocol | None], answers: list[Answer]) -> None:
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Value] = []
        self.weights = Weights(graph)
        self._types = types
        self._answers = answers
        self._labels = 0

    def write(self, tree: Tree, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
        """The tree's nodes after those that are there; gives what they answer."""
        if isinstance(tree, Exported):
            return self._inline(tree, scope, nodes)
        if isinstance(tree, (Number, Repeat)):
            asked = (
                self._inline(tree.question, scope, nodes)[0]
                if isinstance(tree, Number)
                else self._count(tree, scope, nodes)
            )
            return self.write(tree.then, {**scope, tree.name: self._length(asked, nodes)}, nodes)
        assert isinstance(tree, Choice)
        truth = self._inline(tree.question, scope, nodes)[0]
        yes, no = (self._branch(side, scope, truth, is_yes) for side, is_yes in ((tree.yes, True), (tree.no, False)))
        node = choose(truth, yes, no)
        nodes.append(node)
        for output, kind in zip(node.outputs, self._types, strict=True):
            output.type = kind
        return list(node.outputs)

    def _label(self) -> str:
        self._labels += 1
        return f"part_{self._labels}"

    def _inline(self, part: Exported, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
        body = take_body(part.model.graph, self._label(), scope, self.weights)
        own, outputs = take_nodes(body)
        nodes += own
        return outputs

    def _branch(self, tree: Tree, scope: Mapping[str, ir.Value], truth: ir.Value, is_yes: bool) -> ir.Graph:
        nodes: list[ir.Node] = []
        outputs = (
            self._refuse(tree, truth, is_yes, nodes) if isinstance(tree, Refusal) else self.write(tree, scope, nodes)
        )
        return ir.Graph((), outputs, nodes=nodes, name=self._label())

    def _count(self, tree: Repeat, scope: Mapping[str, ir.Value], nodes: list[ir.Node]) -> ir.Value:
        """How often the question is answered so before it is not: the counter of a loop that goes on while it is."""
        number = ir.TensorType(ir.DataType.INT64)
        truth = ir.TensorType(ir.DataType.BOOL)
        label = self._label()
        trip = ir.Value(name=f"{label}/trip", type=number, shape=ir.Shape([]))
        going = ir.Value(name=f"{label}/going", type=truth, shape=ir.Shape([]))
        before = ir.Value(name=f"{label}/before", type=number, shape=ir.Shape([1]))
        own: list[ir.Node] = []
        asked = self._inline(tree.question, {**scope, tree.name: self._length(trip, own)}, own)[0]
        again = self._add(own, "Identity" if tree.answer else "Not", [asked])
        count = self._add(own, "Reshape", [trip, self._constant([1])])
        again.type, count.type = truth, number
        body = ir.Graph([trip, going, before], [again, count], nodes=own, name=f"{label}_body")
        node = ir.node(
            "Loop", [None, self._constant(True), self._constant([0])], {"body": body}, num_outputs=1, name=label
        )
        node.outputs[0].name, node.outputs[0].type = f"{label}/count", number
        nodes.append(node)
        return node.outputs[0]

    def _length(self, number: ir.Value, nodes: list[ir.Node]) -> ir.Value:
        shape = self._add(nodes, "Reshape", [number, self._constant([1])])
        return self._add(nodes, "ConstantOfShape", [shape], {"value": ir.tensor(np.zeros(1, dtype=np.bool_))})

    def _refuse(self, refusal: Refusal, truth: ir.Value, is_yes: bool, nodes: list[ir.Node]) -> list[ir.Value]:
        """Nodes that fail where they run. They read the truth, so that no optimizer runs them when the file is loaded."""
        one = self._add(
            nodes, "Reshape", [self._add(nodes, "Cast", [truth], {"to": ir.DataType.INT64}), self._constant([1])]
        )
        index = one if is_yes else self._add(nodes, "Sub", [self._constant([1]), one])
        zero = self._add(nodes, "Gather", [self._constant([0]), index], name=f"anyshape AS419: {refusal.message}")
        outputs = []
        for kind, answer in zip(self._types, self._answers, strict=True):
            assert kind is not None
            shape = self._add(nodes, "Gather", [zero, self._constant([0] * len(answer.axes))])
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
