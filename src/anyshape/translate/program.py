"""A captured region -> an ONNX model in the user's names; several regions -> one graph.

x -> program where b > 3        x -> Shape -> is b > 3 -> If(then: the first's nodes, else: the second's)
x -> program elsewhere     ->   weights stand once, outside the branches
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from anyshape.domain import TRUE, Condition, Domain, Expr, Number, format_expr, negate, substitute
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.graphs.size_places import Place, places_of, readings_of
from anyshape.inputs import Declared
from anyshape.leaves.recurrent import admit_empty_batch, fold_leaf_weights
from anyshape.records.captured import OutputTensor, Region
from anyshape.records.export import Exported
from anyshape.translate.bodies import Weights, choose, common_outputs, take_body, take_nodes
from anyshape.translate.known_values import admit_empty_means
from anyshape.translate.loops import build_loops
from anyshape.translate.names import keep_sources, name_dims, name_inputs, name_outputs, name_weights
from anyshape.translate.opsets import WRITTEN_OPSET
from anyshape.translate.registry import Translator

IR_VERSION = 10
PRODUCER = "anyshape"


def translate(
    region: Region,
    tensors: Sequence[OutputTensor],
    translator: Translator,
    input_names: Sequence[str],
    output_names: Sequence[str],
    *,
    domain: Domain,
) -> Exported:
    """A region's model, not yet optimized. Raises what torch.onnx raises where an operator has no translation.

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
    name_inputs(model, input_names)
    name_outputs(model, output_names)
    model.producer_name, model.producer_version = PRODUCER, None
    model.ir_version = IR_VERSION
    model.opset_imports.setdefault("", WRITTEN_OPSET)  # torch leaves it out of a graph that had no nodes
    return Exported(model, tuple(input_names), tuple(zip(output_names, tensors, strict=True)), WRITTEN_OPSET)


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


def written_axis(axis: Expr | None) -> int | str | None:
    return axis.value if isinstance(axis, Number) else format_expr(axis) if axis is not None else None
