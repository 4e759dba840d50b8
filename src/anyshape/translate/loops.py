"""Translate what rungs that learn from traces put into programs: loops, and pieces of tensors at places computed from sizes.

`pick`, `cut`, `put` and `put_slice` of `leaves/own_operators.py` become nodes at once. A loop becomes a mark, and the mark an
ONNX `Loop` with the nodes of its body inside:

    anyshape::loop(trips, carried..., tensors..., numbers...)  ->  Loop(trips, true, carried...) { counter, carried... }

A body uses tensors and sizes of the graph around it by reference, so that weights stay initializers outside.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.records.captured import Loop
from anyshape.translate.names import keep_sources, name_dims

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from anyshape.translate.registry import Translator


_DOMAIN = "anyshape"
_MARK = "LoopMark"
_END = 2**62


def loop_translations() -> dict[OpOverload, Callable[..., Any]]:
    """What `Translator` takes: the mark of a loop in a graph, and pieces at computed places."""
    from anyshape.leaves import without_types
    from anyshape.leaves.own_operators import cut, loop, pick, put, put_slice

    translations: dict[OpOverload, Callable[..., Any]] = {
        loop: _translate_mark,
        pick: translate_pick,
        cut: translate_cut,
        put: translate_put,
        put_slice: translate_put_slice,
    }
    return {target: without_types(translation) for target, translation in translations.items()}


def _translate_mark(
    name: str,
    trips: Any,
    carried: Sequence[ir.Value],
    tensors: Sequence[ir.Value],
    numbers: Sequence[Any],
    sizes: Sequence[Any],
    ranks: Sequence[int],
    dtypes: Sequence[str],
) -> Sequence[ir.Value]:
    import onnxscript.evaluator

    node = ir.node(
        _MARK,
        [_as_number(trips), *carried, *tensors, *(_as_number(number) for number in numbers)],
        {"name": name, "carried": len(carried), "tensors": len(tensors)},
        domain=_DOMAIN,
        num_outputs=len(ranks),
    )
    onnxscript.evaluator.default().nodes.append(node)  # torch.onnx's recorder
    return node.outputs


def _as_number(value: Any) -> ir.Value:
    """An integer tensor of no axes."""
    return op.Constant(value=ir.tensor(value, dtype=ir.DataType.INT64)) if isinstance(value, int) else op.Squeeze(value)


def build_loops(model: ir.Model, loops: Mapping[str, Loop], translator: Translator) -> int:
    """Replace every mark of a loop by the loop. Returns how many."""
    return _Builder(model, translator).build(model.graph, loops)


class _Builder:
    """One model's loops, inner ones too; the model gets the initializers and the functions of all bodies."""

    def __init__(self, model: ir.Model, translator: Translator) -> None:
        self._model = model
        self._root = model.graph
        self._translator = translator
        self._count = 0

    def build(self, graph: ir.Graph, loops: Mapping[str, Loop]) -> int:
        marks = [node for node in graph if node.domain == _DOMAIN and node.op_type == _MARK]
        for mark in marks:
            self._replace(graph, mark, loops[mark.attributes["name"].as_string()])
        return len(marks)

    def _replace(self, graph: ir.Graph, mark: ir.Node, loop: Loop) -> None:
        self._count += 1
        prefix = f"loop{self._count}"
        model = self._translator.translate(loop.program)
        keep_sources(model)
        name_dims(model, loop.symbols)
        self._model.functions.update(model.functions)
        for domain, version in model.opset_imports.items():
            self._model.opset_imports.setdefault(domain, version)
        self.build(model.graph, loop.loops)
        body = self._body(model.graph, mark, loop, prefix)
        carried = mark.attributes["carried"].as_int()
        # The condition may be left out by the standard; a loop that carries nothing would then have one input too few.
        always = ir.node("Constant", [], {"value": ir.tensor(True)}, name=f"{prefix}/always")
        always.outputs[0].name = f"{prefix}/always"
        graph.insert_before(mark, always)
        node = ir.node(
            "Loop",
            [mark.inputs[0], always.outputs[0], *mark.inputs[1 : 1 + carried]],
            {"body": body},
            num_outputs=len(mark.outputs),
            name=prefix,
        )
        node.metadata_props.update(mark.metadata_props)
        for old, new in zip(mark.outputs, node.outputs, strict=True):
            new.name, new.type = old.name, old.type
            # Not the sizes: without a trip onnxruntime has its own idea of them, and nobody may count on another.
            new.shape = ir.Shape([None] * len(old.shape)) if old.shape is not None else None
            ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        graph.insert_before(mark, node)
        graph.remove(mark, safe=True)

    def _body(self, graph: ir.Graph, mark: ir.Node, loop: Loop, prefix: str) -> ir.Graph:
        counter = _value(f"{prefix}/counter", ir.DataType.INT64)
        goes_on = _value(f"{prefix}/goes_on", ir.DataType.BOOL)
        first_tensor = 1 + mark.attributes["carried"].as_int()
        first_number = first_tensor + mark.attributes["tensors"].as_int()
        states: dict[int, ir.Value] = {}
        for given, (kind, index) in zip(list(graph.inputs), loop.inputs, strict=True):
            if kind == "carried":
                states[index] = given
                continue
            position = {"tensor": first_tensor, "number": first_number}.get(kind, 0) + index
            outer = counter if kind == "counter" else mark.inputs[position]
            assert outer is not None
            ir.convenience.replace_all_uses_with(given, outer, replace_graph_outputs=True)
        inputs = [
            states[index] if index in states else self._unused(mark, index, prefix) for index in range(loop.carried)
        ]
        nodes = list(graph)
        outputs = list(graph.outputs)
        self._take_initializers(graph, prefix)
        graph.outputs.clear()
        graph.inputs.clear()
        graph.remove(nodes)
        go_on = ir.node("Identity", [goes_on], name=f"{prefix}/go_on")
        results = [self._own(value, nodes, outputs[:index]) for index, value in enumerate(outputs)]
        for value in (*inputs, *(each for each in results)):
            _forget_sizes(value)
        _rename(inputs, [*nodes, go_on], prefix)
        go_on.outputs[0].type = ir.TensorType(ir.DataType.BOOL)
        go_on.outputs[0].shape = ir.Shape([])
        return ir.Graph([counter, goes_on, *inputs], [go_on.outputs[0], *results], nodes=[*nodes, go_on], name=prefix)

    def _unused(self, mark: ir.Node, index: int, prefix: str) -> ir.Value:
        outer = mark.inputs[1 + index]
        assert outer is not None
        return ir.Value(name=f"{prefix}/unused_{index}", type=outer.type, shape=outer.shape)

    def _own(self, value: ir.Value, nodes: list[ir.Node], before: Sequence[ir.Value]) -> ir.Value:
        """A result must be made in the body, and each by itself: what is only handed through gets a node."""
        producer = value.producer()
        if producer is not None and producer in nodes and all(value is not other for other in before):
            return value
        copy = ir.node("Identity", [value])
        copy.outputs[0].type = value.type
        copy.outputs[0].shape = value.shape
        nodes.append(copy)
        return copy.outputs[0]

    def _take_initializers(self, graph: ir.Graph, prefix: str) -> None:
        for name, value in list(graph.initializers.items()):
            graph.initializers.pop(name)
            if graph is self._root or not value.uses():
                continue
            value.name = f"{prefix}/{name}"
            self._root.register_initializer(value)


def _value(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))


def _forget_sizes(value: ir.Value) -> None:
    """Carried values may change their sizes from one repetition to the next: only their rank is declared."""
    if value.shape is not None:
        value.shape = ir.Shape([None] * len(value.shape))


def _rename(inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], prefix: str) -> None:
    """Names of a body are its own: onnxruntime takes a name for the same value inside and outside."""
    for value in inputs:
        value.name = f"{prefix}/{value.name}" if value.name and not value.name.startswith(f"{prefix}/") else value.name
    for number, node in enumerate(nodes):
        node.name = f"{prefix}/{node.name or f'node_{number}'}"
        for index, value in enumerate(node.outputs):
            value.name = f"{prefix}/{value.name or f'value_{number}_{index}'}"


def translate_pick(tensor: ir.Value, axis: int, index: Any) -> ir.Value:
    """x.select(axis, index)"""
    return op.Gather(tensor, _as_number(index), axis=axis)


def translate_cut(tensor: ir.Value, axis: int, start: Any, size: Any, step: int) -> ir.Value:
    """`size` elements from `start` on, `step` apart."""
    first = _vector(start)
    length = _vector(size) if step == 1 else op.Mul(_vector(size), _numbers([step]))
    return op.Slice(tensor, first, op.Add(first, length), _numbers([axis]), _numbers([step]))


def translate_put(tensor: ir.Value, source: ir.Value, axis: int, index: Any) -> ir.Value:
    """x with x.select(axis, index) replaced."""
    return _replaced(tensor, op.Unsqueeze(source, _numbers([axis])), axis, _vector(index), _numbers([1]))


def translate_put_slice(tensor: ir.Value, source: ir.Value, axis: int, start: Any) -> ir.Value:
    """x with as many elements replaced as there are, from `start` on."""
    return _replaced(tensor, source, axis, _vector(start), op.Shape(source, start=axis, end=axis + 1))


def _replaced(tensor: ir.Value, source: ir.Value, axis: int, start: ir.Value, size: ir.Value) -> ir.Value:
    before = op.Slice(tensor, _numbers([0]), start, _numbers([axis]))
    after = op.Slice(tensor, op.Add(start, size), _numbers([_END]), _numbers([axis]))
    return op.Concat(before, source, after, axis=axis)


def _numbers(values: list[int]) -> ir.Value:
    return op.Constant(value=ir.tensor(values, dtype=ir.DataType.INT64))


def _vector(value: Any) -> ir.Value:
    return _numbers([value]) if isinstance(value, int) else op.Reshape(value, _numbers([1]))
