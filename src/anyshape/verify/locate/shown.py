"""A file's inner values: a copy of the file that gives them as outputs too, run in a child without optimizations.

All values come from one run. Those inside a loop are the ones of its first turn; of a branch, those of the side taken.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from anyshape.runtime.child_messages import RunError
from anyshape.runtime.client import ChildRunner
from anyshape.runtime.custom_node_plan import subgraphs
from anyshape.runtime.dtypes import Array

_NODE = re.compile(r"running \w+ node\. Name:'(.*?)' Status|Node ?\(([^)]*)\)|In Node, \(\"?([^,\"]*)|node \(([^)]*)\)")
_NO_TENSOR = ("Sequence", "Optional", "SplitToSequence")


class Stopped(Exception):
    """The file does not answer; `node` is the name of the node that stopped it, "" where the runtime does not name it."""

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


def every_node(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of those inside its nodes."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from every_node(inner)


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
    deadline: float


def show(model: Any, names: Sequence[str], given: Given) -> dict[str, Array]:
    """These values of the model, by name; only what they need is run. Raises Stopped."""
    cut = _cut(model, names)
    inputs = {value.name for value in cut.graph.input}
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "shown.onnx"
        path.write_bytes(cut.SerializeToString())
        left = max(0.5, given.deadline - monotonic())
        with ChildRunner(
            path, optimize=False, time_limit_s=left, load_limit_s=left, operators=given.operators
        ) as runner:
            try:
                arrays = runner.run({name: array for name, array in given.feeds.items() if name in inputs})
            except RunError as error:
                raise Stopped(str(error)) from error
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
