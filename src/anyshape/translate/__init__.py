"""Stage: captured programs -> an ONNX model in the user's names.

This file: a captured region -> an ONNX model in the user's names; several regions -> one graph, each weight stored once.

x -> program where b > 3        x -> Shape -> is b > 3 -> If(then: the first's nodes, else: the second's)
x -> program elsewhere     ->   weights stand once, outside the branches

Files, in the order in which data flows:

    registry          torch.onnx's operator library, with our translations before it
    legacy            torch.onnx's library, with signatures only of what is needed; the last rung: torch's TorchScript exporter
    custom            the user's own operators: their translations, or their Python bodies
    known_values      what is known of an fx node without running it: its values, and whether it gives new memory
    fewer_nodes       passes on the captured program before translation; assertions about values -> nodes that fail
    private_writes    operators that write in place -> operators that return
    decomposed_nodes  decompose single operators, in place
    alike_programs    regions whose programs are alike as one
    operators/        translations of ATen operators
    floats            floats as torch computes them
    whole_numbers     sizes, exact in 64 bits; Reshape to computed sizes that may be 0
    lacking_forms     opset 18 -> opset 17; integers and booleans for which onnxruntime has no kernels
    exact_quotients   quotients and remainders of integers by open divisors; NodeWriter: nodes in place of one
    exact_int64       integers that onnxruntime computes inexactly, with operators that are exact
    loops             marks of loops -> ONNX Loop
    decisions         a tree of decisions on values -> If and Loop
    names             names and source lines in the file
    opsets            the opsets that are written; opset 18 -> the user's
    opset_forms       forms of operators in older opsets
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from anyshape.domain import TRUE, Compare, Condition, Domain, Expr, decide, format_expr, negate
from anyshape.graphs import Place, on_places, places_of, readings_of
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.inputs import Declared
from anyshape.leaves.recurrent import admit_empty_batch, fold_leaf_weights
from anyshape.records.captured import OutputTensor, Region
from anyshape.records.export import Exported
from anyshape.translate.known_values import admit_empty_means
from anyshape.translate.loops import build_loops
from anyshape.translate.names import (
    keep_sources,
    leave_false_sizes_open,
    name_dims,
    name_inputs,
    name_outputs,
    name_weights,
    written_axis,
)
from anyshape.translate.opsets import WRITTEN_OPSET
from anyshape.translate.registry import Translator

IR_VERSION = 10
PRODUCER = "anyshape"
_STEPS = 1_000_000  # of the solver


def translate(
    region: Region,
    tensors: Sequence[OutputTensor],
    translator: Translator,
    inputs: Mapping[str, Sequence[Expr]],
    output_names: Sequence[str],
    *,
    domain: Domain,
) -> Exported:
    """A region's model, not yet optimized. Raises what torch.onnx raises where an operator has no translation.

    `inputs` has the axes of each input by its name.
    The domain decides whether sizes may be 0, which onnxruntime's recurrent kernels do not survive and its means do not see.
    """
    model = translator.translate(region.program, region.symbols)
    build_loops(model, region.loops, translator)
    fold_leaf_weights(model)
    if any(dim.min == 0 for dim in domain.dims):
        admit_empty_batch(model)
    keep_sources(model)
    name_dims(model, region.symbols, domain)
    admit_empty_means(model, domain.narrowed(region.condition))
    name_weights(model)
    name_inputs(model, tuple(inputs))
    name_outputs(model, output_names)
    leave_false_sizes_open(model, region.guards, tuple(inputs.values()), tensors)
    model.producer_name, model.producer_version = PRODUCER, None
    model.ir_version = IR_VERSION
    model.opset_imports.setdefault("", WRITTEN_OPSET)  # torch leaves it out of a graph that had no nodes
    return Exported(model, tuple(inputs), tuple(zip(output_names, tensors, strict=True)), WRITTEN_OPSET)


def join_regions(parts: Sequence[Exported], conditions: Sequence[Condition], declared: Declared) -> Exported:
    """One model that runs the first part whose condition holds, and the last part where no condition holds."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    graph = first.model.graph
    weights = Weights(graph)
    types = [value.type for value in graph.outputs]
    inputs = dict(zip(first.input_names, graph.inputs, strict=True))
    bodies = [take_body(part.model.graph, f"region_{index}", inputs, weights) for index, part in enumerate(parts)]
    sizes = _SizeTests(graph, declared)
    chosen = bodies[-1]
    for index in range(len(parts) - 2, -1, -1):
        node = choose(sizes.test(conditions[index]), bodies[index], chosen)
        chosen = ir.Graph((), list(node.outputs), nodes=[node], name=f"after_region_{index}")
    nodes, outputs = take_nodes(chosen)
    graph.extend([*sizes.nodes, *nodes])
    for value in (*weights.added, *sizes.initializers):
        graph.register_initializer(value)
    tensors = common_outputs(parts, _domains(conditions, declared.domain))
    for output, (name, tensor), kind in zip(outputs, tensors, types, strict=True):
        output.name, output.type = name, kind
        output.shape = None if tensor.any_rank else ir.Shape([written_axis(axis) for axis in tensor.axes])
        graph.outputs.append(output)
    return replace(first, outputs=tensors)


def _domains(conditions: Sequence[Condition], domain: Domain) -> list[Domain]:
    """The sizes at which each part is run: its condition holds, and none of those before it; the last one's need not."""
    before = [negate(condition) for condition in conditions]
    own = [*conditions[:-1], TRUE]
    return [domain.narrowed(*before[:index], condition) for index, condition in enumerate(own)]


class _SizeTests:
    """Nodes that compute from the inputs' shapes whether a condition on the dims holds."""

    def __init__(self, graph: ir.Graph, declared: Declared) -> None:
        self._inputs = {value.name: value for value in graph.inputs}
        axes = {leaf.name: leaf.axes for leaf in declared.tensor_leaves}
        numbers = {leaf.name: leaf.number for leaf in declared.open_leaves if leaf.number is not None}
        self._places: dict[str, Place] = {place.key: place for place in places_of(axes, numbers)}
        self._readings = readings_of(declared.domain, tuple(self._places.values()))
        taken = {value.name for value in (*graph.inputs, *graph.initializers.values()) if value.name}
        self._arithmetic = Arithmetic(self._axis, taken)

    @property
    def nodes(self) -> list[ir.Node]:
        return self._arithmetic.nodes

    @property
    def initializers(self) -> list[ir.Value]:
        return self._arithmetic.initializers

    def test(self, condition: Condition) -> ir.Value:
        excess = self._arithmetic.excess(on_places(condition, tuple(self._places.values()), self._readings))
        test = self._arithmetic.add("LessOrEqual", excess, self._arithmetic.constant([0]))
        test.type = ir.TensorType(ir.DataType.BOOL)
        return test

    def _axis(self, key: str) -> ir.Value:
        place = self._places[key]
        if place.is_value:
            return self._arithmetic.number(self._inputs[place.input])
        return self._arithmetic.add("Shape", self._inputs[place.input], start=place.axis, end=place.axis + 1)


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
    return one == other or decide(domain, Compare("==", one, other), steps=_STEPS).proved
