"""Add nodes to a graph that fail at sizes outside the contract: by an index out of range, which onnxruntime reports.

The excess of a rule is by how much sizes break it, 0 where it holds.

    x, mask -> model     ->     x, mask -> Shape -> excess of each rule -> Gather named with the rule -> 0
                                x -> Reshape(x, zeros) -> model

A rule's Gather looks up its excess in a table of one entry, so it fails where the excess is 1 or more, and onnxruntime prints
its name. Its output is the entry, 0: a table of one entry again, from which the Gather of the next rule takes its 0. The last
output, repeated to the rank, is the shape by which inputs are reshaped; a 0 in it means "as it is". So no optimizer can
leave a check out, all checks run before the model, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from anyshape.contract.graph_rules import GraphRule, graph_rules
from anyshape.domain import Compare, Condition, Expr, Number, Ref, conjuncts
from anyshape.findings import Finding, UsageError
from anyshape.graphs import Place
from anyshape.graphs.arithmetic import Arithmetic, divisors
from anyshape.records.contract import Contract

OLDEST_OPSET = 13
_AXES_ARE_INPUT = 18  # of ReduceMax; an attribute before

# onnxruntime keeps shape arithmetic off a GPU only as long as each constant in it is small.
_RULES_AT_ONCE = 32


def defend(model: ir.Model, contract: Contract) -> int:
    """Add the nodes that refuse sizes outside the contract. Returns how many rules they enforce.

    Ranks, dtypes and fixed sizes are the runtime's own business: they stand in the declaration of the inputs.
    """
    graph = model.graph
    places, rules = graph_rules(contract)
    inputs = {value.name: value for value in graph.inputs if value.name}
    gated = inputs_to_gate(graph, [place.input for place in places])
    if not rules or not gated:
        return 0
    opset = graph.opset_imports.get("", 0)
    if opset < OLDEST_OPSET:
        raise UsageError(_opset_too_old(opset))
    defence = Defence(inputs, places, names_in(model), opset)
    insert_defence(graph, defence, gated, defence.enforce(rules))
    return len(rules)


def inputs_to_gate(graph: ir.Graph, dynamic: Sequence[str]) -> list[ir.Value]:
    """The inputs that the model must not see before the checks: those of open sizes, or any if those are unused."""
    used = [value for value in graph.inputs if value.uses() and value.shape is not None]
    return [value for value in used if value.name in dynamic] or used


def names_in(model: ir.Model) -> set[str]:
    """The names of all values in a model."""
    names = {value.name for graph in model.graphs() for value in (*graph.inputs, *graph.initializers.values())}
    names |= {value.name for node in model.graph.all_nodes() for value in node.outputs}
    return {name for name in names if name is not None}


def insert_defence(graph: ir.Graph, defence: Defence, gated: Sequence[ir.Value], zero: ir.Value) -> None:
    """Put the nodes in front of the model, which then uses the gated inputs only once all checks have given 0."""
    gates = [(value, defence.gate(value, zero)) for value in gated]
    own = set(defence.arithmetic.nodes)
    for value, gate in gates:
        for use in tuple(value.uses()):
            if use.node not in own:
                use.node.replace_input_with(use.idx, gate)
    for initializer in defence.arithmetic.initializers:
        graph.register_initializer(initializer)
    nodes = defence.arithmetic.nodes
    if len(graph):
        graph.insert_before(graph[0], nodes)
    else:
        graph.extend(nodes)


@dataclass(frozen=True)
class _Pair:
    """`left <= right`, where each is an axis, a number, or something computed from them."""

    left: Expr | ir.Value
    right: Expr | ir.Value


class Defence:
    """The nodes of one graph's defence, while they are written."""

    def __init__(self, inputs: dict[str, ir.Value], places: Sequence[Place], names: set[str], opset: int) -> None:
        self.arithmetic = Arithmetic(self._axis, names)
        self._opset = opset
        self._places = {place.key: place for place in places}
        self._inputs = inputs
        self._zeros: dict[int, ir.Value] = {}  # by rank
        self._shapes: dict[str, ir.Value] = {}
        for name in dict.fromkeys(place.input for place in places if not place.is_value):
            shape = inputs[name].shape
            assert shape is not None
            self._shapes[name] = self.arithmetic.add("Shape", inputs[name], size=len(shape))

    def _axis(self, key: str) -> ir.Value:
        place = self._places[key]
        if place.is_value:
            return self.arithmetic.number(self._inputs[place.input])
        return self.arithmetic.add("Gather", self._shapes[place.input], self.arithmetic.constant([place.axis]))

    def enforce(self, rules: Sequence[GraphRule]) -> ir.Value:
        """A vector of one 0 that is there only if every rule holds."""
        pairs = [self._pairs(rule.condition) for rule in rules]
        sizes, index = self._sizes([side for rule in pairs for pair in rule for side in (pair.left, pair.right)])
        zero = self.arithmetic.constant([0])
        nothing = index[Number(0)]
        for start in range(0, len(rules), _RULES_AT_ONCE):
            some = slice(start, start + _RULES_AT_ONCE)
            rows = [[(index[p.left], index[p.right]) for p in rule] for rule in pairs[some]]
            # The third column is 0 - 0: a rule that holds with room to spare has no excess at all.
            padded = [(row + [(nothing, nothing)] * 3)[:3] for row in rows]
            excesses = self._excesses(sizes, padded)
            for rule, excess in zip(rules[some], excesses, strict=True):
                zero = self.arithmetic.add("Gather", zero, excess, name=f"anyshape {rule.message}")
        return zero

    def _pairs(self, condition: Condition) -> list[_Pair]:
        """At most two comparisons of values; what cannot be expressed like that is computed with nodes of its own."""
        pairs: list[_Pair] = []
        for part in conjuncts(condition):
            if not isinstance(part, Compare) or part.op not in ("<=", ">=", "==") or divisors(part):
                return [self._computed(condition)]
            if part.op in ("<=", "=="):
                pairs.append(_Pair(part.left, part.right))
            if part.op in (">=", "=="):
                pairs.append(_Pair(part.right, part.left))
        return pairs if 0 < len(pairs) <= 2 else [self._computed(condition)]

    def _computed(self, condition: Condition) -> _Pair:
        return _Pair(self.arithmetic.excess(condition), Number(0))

    def _sizes(self, sides: Sequence[Expr | ir.Value]) -> tuple[ir.Value, dict[Expr | ir.Value, int]]:
        """All values that rules compare in one vector, and where in it each one is."""
        index: dict[Expr | ir.Value, int] = {}
        parts: list[ir.Value] = []
        length = 0
        for name, shape in self._shapes.items():
            own = [place for place in self._places.values() if place.input == name]
            index.update({Ref(place.key): length + place.axis for place in own})
            parts.append(shape)
            length += _length(shape)
        numbers = list(dict.fromkeys([Number(0), *(side for side in sides if isinstance(side, Number))]))
        index.update({number: length + offset for offset, number in enumerate(numbers)})
        parts.append(self.arithmetic.constant([number.value for number in numbers]))
        length += len(numbers)
        for side in sides:
            if side not in index:
                parts.append(side if isinstance(side, ir.Value) else self.arithmetic.expr(side))
                index[side] = length
                length += 1
        return self.arithmetic.add("Concat", *parts, size=length, axis=0), index

    def _excesses(self, sizes: ir.Value, rows: Sequence[Sequence[tuple[int, int]]]) -> list[ir.Value]:
        """By how much each rule is broken: the largest difference in its row."""
        left, right = (
            self.arithmetic.add(
                "Gather", sizes, self.arithmetic.constant([[pair[side] for pair in row] for row in rows])
            )
            for side in (0, 1)
        )
        difference = self.arithmetic.add("Sub", left, right)
        for value in (left, right, difference):
            value.shape = ir.Shape([len(rows), 3])
        excess = self._largest(difference, len(rows))
        if len(rows) == 1:
            return [excess]
        return self._split(excess, len(rows))

    def _largest(self, difference: ir.Value, count: int) -> ir.Value:
        if self._opset >= _AXES_ARE_INPUT:
            return self.arithmetic.add("ReduceMax", difference, self.arithmetic.constant([1]), size=count, keepdims=0)
        largest = self.arithmetic.add("ReduceMax", difference, size=count, keepdims=0)
        node = largest.producer()
        assert node is not None
        node.attributes["axes"] = ir.AttrInt64s("axes", [1])
        return largest

    def _split(self, vector: ir.Value, count: int) -> list[ir.Value]:
        """One vector of one for each entry."""
        outputs = [
            ir.Value(
                name=self.arithmetic.free_name("split"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([1])
            )
            for _ in range(count)
        ]
        ones = self.arithmetic.constant([1] * count)
        self.arithmetic.nodes.append(
            ir.node("Split", [vector, ones], {"axis": 0}, outputs=outputs, name=outputs[0].name)
        )
        return outputs

    def gate(self, value: ir.Value, zero: ir.Value) -> ir.Value:
        """The input as it is, once the checks have passed."""
        assert value.shape is not None
        rank = len(value.shape)
        if rank == 1:
            self._zeros[rank] = zero
        if rank not in self._zeros:
            self._zeros[rank] = self.arithmetic.add("Gather", zero, self.arithmetic.constant([0] * rank), size=rank)
        gated = self.arithmetic.add("Reshape", value, self._zeros[rank])
        gated.type, gated.shape = value.type, value.shape.copy()
        return gated


def _length(vector: ir.Value) -> int:
    assert vector.shape is not None
    length = vector.shape[0]
    assert isinstance(length, int)
    return length


def _opset_too_old(opset: int) -> Finding:
    return Finding(
        code="AS049",
        name="opset-too-old",
        what=f"the file has opset {opset}, and the graph's own checks need {OLDEST_OPSET} or newer.",
        fix="convert it: onnx.version_converter.convert_version(model, 18)",
        is_fix_untried=True,
        alternative='enforce="load" leaves the checks to anyshape.load.',
    )
