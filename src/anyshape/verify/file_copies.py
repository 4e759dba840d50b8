"""Copies of a file: in bfloat16 as one that a CPU can run, and with its inner values as outputs.

    bfloat16 y = MatMul(a, w)     ->     float y' = MatMul(a, w)    y = Cast<float>(Cast<bfloat16>(y'))

Every node computes in single precision and its answer is rounded, which is what hardware does with bfloat16. Weights
and inputs are what they were. Only the copy that is compared is changed; the verdict has a note.

All values come from one run. Those inside a loop are the ones of its first turn; of a branch, those of the side taken.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyshape.runtime import ChildRunner
from anyshape.runtime.child_messages import Array, RunError, dtype_called
from anyshape.runtime.custom_node_plan import every_node, subgraphs

NOTE = "onnxruntime has no bfloat16 on the CPU: the file was run in float32, each node's answer rounded to bfloat16"
_BFLOAT16, _FLOAT = 16, 1
_KEPT = ("Cast", "CastLike", "Shape", "Size")
_NODE = re.compile(r"running \w+ node\. Name:'(.*?)' Status|Node ?\(([^)]*)\)|In Node, \(\"?([^,\"]*)|node \(([^)]*)\)")
_NO_TENSOR = ("Sequence", "Optional", "SplitToSequence")


@dataclass(frozen=True)
class Bfloat16Copy:
    """The copy's path, and which of its outputs the file itself gives in bfloat16."""

    path: str
    narrow_outputs: tuple[bool, ...]

    def feeds(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Inputs for the copy."""
        return {name: _wide(array) for name, array in given.items()}

    def outputs(self, given: Sequence[Array]) -> list[Array]:
        """The copy's outputs in the file's own types."""
        narrow = dtype_called("bfloat16")
        pairs = zip(given, self.narrow_outputs, strict=True)
        return [array.astype(narrow) if is_narrow else array for array, is_narrow in pairs]


def copy_bfloat16_file(path: str, folder: str) -> Bfloat16Copy | None:
    """Write the copy into the folder; None for a file that has no bfloat16, or is not to be read."""
    import onnx

    try:
        if not _has_narrow(onnx.load(path, load_external_data=False)):
            return None
        model = onnx.load(path)
        known = onnx.shape_inference.infer_shapes(model) if model.ByteSize() < 1 << 30 else model
    except Exception:  # whatever is wrong with the file, running it tells better
        return None
    narrow = tuple(value.type.tensor_type.elem_type == _BFLOAT16 for value in model.graph.output)
    names = {value.name for graph in _graphs(known.graph) for value in _values(graph) if _is_narrow(value)}
    names |= {
        tensor.name for graph in _graphs(model.graph) for tensor in graph.initializer if _is_narrow_tensor(tensor)
    }
    for graph in _graphs(model.graph):
        _widen_graph(graph, names)
    target = Path(folder) / "float32.onnx"
    onnx.save(model, target)
    return Bfloat16Copy(str(target), narrow)


def _widen_graph(graph: Any, names: set[str]) -> None:
    for value in _values(graph):
        if _is_narrow(value):
            value.type.tensor_type.elem_type = _FLOAT
    del graph.value_info[:]
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    nodes = [new for node in graph.node for new in _widened_node(node, names)]
    copies = [copied(node) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _widened_node(node: Any, names: set[str]) -> Iterator[Any]:
    from onnx import helper

    casts = node.op_type == "Cast" and any(each.name == "to" and each.i == _BFLOAT16 for each in node.attribute)
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _widen_tensor(attribute.t)
        if attribute.name in ("to", "dtype") and attribute.i == _BFLOAT16:
            attribute.i = _FLOAT
    rounded = [place for place, name in enumerate(node.output) if name in names or (casts and name)]
    if node.op_type == "Constant" or (node.op_type in _KEPT and not casts):
        rounded = []
    before = {place: node.output[place] for place in rounded}
    for place in rounded:
        node.output[place] = f"{before[place]}/wide"
    yield node
    for name in before.values():
        yield helper.make_node("Cast", [f"{name}/wide"], [f"{name}/narrow"], to=_BFLOAT16)
        yield helper.make_node("Cast", [f"{name}/narrow"], [name], to=_FLOAT)


def _widen_tensor(tensor: Any) -> None:
    from onnx import numpy_helper

    if _is_narrow_tensor(tensor):
        tensor.CopyFrom(numpy_helper.from_array(_wide(numpy_helper.to_array(tensor)), tensor.name))


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def copied(node: Any) -> Any:
    """A copy of a node."""
    import onnx

    fresh = onnx.NodeProto()
    fresh.CopyFrom(node)
    return fresh


def _has_narrow(model: Any) -> bool:
    return any(
        any(map(_is_narrow, _values(graph)))
        or any(map(_is_narrow_tensor, graph.initializer))
        or any(each.name == "to" and each.i == _BFLOAT16 for node in graph.node for each in node.attribute)
        for graph in _graphs(model.graph)
    )


def _is_narrow(value: Any) -> bool:
    return bool(value.type.tensor_type.elem_type == _BFLOAT16)


def _is_narrow_tensor(tensor: Any) -> bool:
    return bool(tensor.data_type == _BFLOAT16)


def _values(graph: Any) -> Iterator[Any]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


class CopyFailed(Exception):
    """A copy of the file fails in the runtime; `node` is the name of that node, "" where the runtime does not name one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = ["".join(groups) for groups in _NODE.findall(message)]
        self.node = found[-1] if found else ""  # a node inside a loop or a branch comes last


def load_named(path: str) -> Any:
    """The model with its functions written out, and a name on every node."""
    import onnx
    from onnx import inliner

    model = onnx.load(path)
    if model.functions:
        model = inliner.inline_local_functions(model)
    taken: set[str] = set()
    for node in every_node(model.graph):
        name = node.name or next((output for output in node.output if output), node.op_type)
        while name in taken:
            name += "'"
        taken.add(name)
        node.name = name
    return model


def names_used(node: Any) -> Iterator[str]:
    """The values that a node reads, those that its graphs take from around it among them."""
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        for inner in graph.node:
            yield from (name for name in names_used(inner) if name not in inside)
            inside.update(inner.output)
        yield from (value.name for value in graph.output if value.name not in inside)


def gives_tensors(node: Any) -> bool:
    """Whether a node's outputs can be shown."""
    return not node.op_type.startswith(_NO_TENSOR)


@dataclass(frozen=True, eq=False)
class Given:
    """What a copy is run with, and until when."""

    feeds: Mapping[str, Array]
    operators: Mapping[str, Callable[..., Any]]
    seconds_left: Callable[[], float]  # of processor time


def show(model: Any, names: Sequence[str], given: Given) -> dict[str, Array]:
    """These values of the model, by name; only what they need is run. Raises CopyFailed."""
    cut = _cut(model, names)
    inputs = {value.name for value in cut.graph.input}
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "shown.onnx"
        path.write_bytes(cut.SerializeToString())
        left = max(0.5, given.seconds_left())
        with ChildRunner(path, optimize=False, time_limit_s=left, operators=given.operators) as runner:
            try:
                arrays = runner.run({name: array for name, array in given.feeds.items() if name in inputs})
            except RunError as error:
                raise CopyFailed(str(error)) from error
    return dict(zip(names, arrays, strict=True))


def _types(model: Any, names: set[str]) -> Iterator[Any]:
    """The types of these values without their shapes, which may be what is wrong."""
    import onnx

    for value in model.graph.value_info:
        if value.name in names and value.type.HasField("tensor_type"):
            bare = onnx.ValueInfoProto(name=value.name)
            bare.type.tensor_type.elem_type = value.type.tensor_type.elem_type
            yield bare


def _cut(model: Any, names: Iterable[str]) -> Any:
    """A copy that gives these values and holds no node that they do not need."""
    import onnx

    wanted = list(names)
    needed = set(wanted)
    kept = []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(names_used(node))
    cut = onnx.ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions, domain=model.domain
    )
    cut.graph.name = model.graph.name or "graph"
    cut.graph.node.extend(reversed(kept))
    cut.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in needed)
    cut.graph.sparse_initializer.extend(model.graph.sparse_initializer)
    cut.graph.input.extend(model.graph.input)
    cut.graph.value_info.extend(_types(model, needed))  # a model that runs in pieces needs them
    declared = {value.name: value for value in model.graph.output}
    cut.graph.output.extend(declared.get(name, onnx.ValueInfoProto(name=name)) for name in wanted)
    return cut
