"""A model of unknown origin, checked before anything is done with it: its functions, its graphs, and all of their tensors.

Nothing outside its folder is read, no memory is taken for what it only claims to have, and every walk over it ends. What
onnxruntime checks by itself (operators, types, shapes) is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING

from anyshape.contract.file_messages import missing_data
from anyshape.contract.safe_tensors import Beside, check_tensor, known_bits, many, short, unsafe
from anyshape.findings import UsageError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_DEEPEST = 64
_MOST_ELEMENTS = 2**31
_MOST_NODES = 10_000_000  # of all functions, written out at each of their calls


def check_proto(model: onnx.ModelProto, beside: Beside, *, needs_weights: bool = True) -> None:
    """Raise UsageError (AS505) for a model that no exporter writes.

    That is: graphs that are nested too deep, functions that call each other in a circle, inputs or outputs of one name, tensors
    without their data or of no known type, and data outside the model's folder. With `needs_weights`, also (AS043) where data
    is missing.
    """
    name = beside.name
    _check_texts((each for opset in model.opset_import for each in (opset.domain,)), name)
    _check_texts((each for own in model.functions for each in (own.domain, own.name, *own.input, *own.output)), name)
    _check_functions(model, name)
    _check_ends(model.graph, name)
    missing: dict[str, None] = {}
    for nodes, tensors in _parts(model, name):
        _check_texts((text for node in nodes for text in _texts_of(node)), name)
        inside = (
            tensor
            for node in nodes
            for attribute in node.attribute
            for tensor in (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors)
        )
        for tensor in (*tensors, *inside):
            location = check_tensor(tensor, beside)
            if location is not None:
                missing[location] = None
    if missing and needs_weights:
        raise UsageError(missing_data(name, list(missing)))


def check_to_edit(model: onnx.ModelProto, name: str) -> None:
    """Raise UsageError (AS505) for what can be run, and not edited: sparse weights, and inputs that no machine holds."""
    for value in (*model.graph.input, *model.graph.output):
        sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.HasField("dim_value")]
        if prod(max(size, 1) for size in sizes) > _MOST_ELEMENTS:
            raise UsageError(
                unsafe(name, f"{value.name!r} is declared with {many(sizes)} elements.", "no machine holds it.")
            )
    if any(graph.sparse_initializer for graph in _graphs(model.graph, name)):
        raise UsageError(unsafe(name, "it has sparse weights.", "these are not read."))


def _check_functions(model: onnx.ModelProto, name: str) -> None:
    """Raise UsageError for functions that call themselves, and for those that are too many nodes once they are written out."""
    own = {(each.domain, each.name, each.overload): each for each in model.functions}
    counts: dict[tuple[str, str, str], int] = {}
    open_calls: set[tuple[str, str, str]] = set()

    def count(key: tuple[str, str, str]) -> int:
        if key in counts:
            return counts[key]
        if key in open_calls:
            raise UsageError(unsafe(name, f"its function {short(key[1])} calls itself.", "such a function has no end."))
        if len(open_calls) > _DEEPEST:
            what = f"its functions call each other more than {_DEEPEST} deep."
            raise UsageError(unsafe(name, what, "no exporter writes that."))
        open_calls.add(key)
        counts[key] = sum(map(of_node, _nodes_below(own[key].node, name)))
        open_calls.discard(key)
        return counts[key]

    def of_node(node: onnx.NodeProto) -> int:
        key = (node.domain, node.op_type, node.overload)
        return count(key) if key in own else 1

    if own and sum(map(of_node, _nodes_below(model.graph.node, name))) + sum(map(count, own)) > _MOST_NODES:
        raise UsageError(
            unsafe(
                name, f"its functions have more than {_MOST_NODES} nodes.", "each call of a function counts its nodes."
            )
        )


def _check_ends(graph: onnx.GraphProto, name: str) -> None:
    dims = (dim for value in (*graph.input, *graph.output) for dim in value.type.tensor_type.shape.dim)
    _check_texts((dim.dim_param for dim in dims), name)
    for side, values in (("input", graph.input), ("output", graph.output)):
        names = [value.name for value in values]
        twice = next((each for each in names if names.count(each) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise UsageError(unsafe(name, f"it has two {side}s {short(twice)}.", f"an {side} is known by its name."))
        if "" in names:
            raise UsageError(unsafe(name, f"one of its {side}s has no name.", f"an {side} is known by its name."))
        _check_texts(names, name)
        for value in values:
            kind = value.type.tensor_type
            if value.type.HasField("tensor_type") and kind.elem_type not in known_bits():
                what = f"{side} {short(value.name)} has the unknown element type {kind.elem_type}."
                raise UsageError(unsafe(name, what, "a newer ONNX may have it."))


def _texts_of(node: onnx.NodeProto) -> tuple[str, ...]:
    names = (attribute.name for attribute in node.attribute)
    return (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output, *names)


def _check_texts(texts: Iterable[object], name: str) -> None:
    """Raise UsageError for names that are no texts: protobuf gives what is no UTF-8 as bytes."""
    if any(type(text) is not str for text in texts):
        raise UsageError(unsafe(name, "one of its names is no text.", "names are UTF-8."))


def _parts(model: onnx.ModelProto, name: str) -> Iterator[tuple[list[onnx.NodeProto], list[onnx.TensorProto]]]:
    """Nodes and weights of all graphs, functions included."""
    for graph in _graphs(model.graph, name):
        sparse = [part for each in graph.sparse_initializer for part in (each.values, each.indices)]
        yield list(graph.node), [*graph.initializer, *sparse]
    for function in model.functions:
        yield list(_nodes_below(function.node, name)), []


def _graphs(graph: onnx.GraphProto, name: str) -> Iterator[onnx.GraphProto]:
    yield graph
    yield from (inner for inner, _ in _inner_graphs(list(graph.node), name))


def _nodes_below(nodes: object, name: str) -> Iterator[onnx.NodeProto]:
    first: list[onnx.NodeProto] = list(nodes)  # type: ignore[call-overload]
    yield from first
    for inner, _ in _inner_graphs(first, name):
        yield from inner.node


def _inner_graphs(nodes: list[onnx.NodeProto], name: str) -> Iterator[tuple[onnx.GraphProto, int]]:
    """The graphs in the attributes of these nodes, with their depth. Raises UsageError for one that is too deep."""
    left = [(nodes, 1)]
    while left:
        owners, depth = left.pop()
        for node in owners:
            for attribute in node.attribute:
                for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                    if depth > _DEEPEST:
                        what = f"its graphs are nested more than {_DEEPEST} deep."
                        raise UsageError(unsafe(name, what, "no exporter writes that."))
                    yield inner, depth
                    left.append((list(inner.node), depth + 1))


def sort_graphs(model: ir.Model, name: str) -> None:
    """Bring nodes into an order in which they can run. Raises UsageError for a cycle."""
    try:
        model.graph.sort()
    except ValueError as error:
        raise UsageError(
            unsafe(name, "its nodes form a cycle.", "each of them needs the result of another one first.")
        ) from error
