"""A file's graph as one list of nodes, also where branches and loops lie in it; and the user's line behind a node.

    If(c){...}      ->  the nodes of the side that is taken for these inputs
    Scan/Loop{...}  ->  its inner nodes before it; their values, turn by turn, become outputs of it

Only a copy is changed, and only to be looked at.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyshape.findings import Source
from anyshape.modules.user_code import source_of_stack_text
from anyshape.runtime.child_messages import Array
from anyshape.verify.file_copies import CopyFailed, Given, copied, gives_tensors, names_used, show
from anyshape.verify.locate.module_values import KnownValues
from anyshape.verify.tensors import to_array

_DEEPEST = 6
_NO_TURN = 1 << 30
LOOPS = ("Scan", "Loop")
_OURS = "anyshape.source"
_TORCH = "pkg.torch.onnx.stack_trace"
_SEPARATORS = re.compile(r"\W|_")


@dataclass(frozen=True, eq=False)
class FileNode:
    """A node with the values that it reads and gives, by names that are unique in the whole file.

    `loop` is the name of the loop that it lies in, if it does.
    """

    name: str
    op_type: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    proto: Any
    loop: str = ""


def open_branches(model: Any, given: Given) -> dict[str, str]:
    """Put the side of each outer If that is taken in its place; the name of the If for each node that comes from one."""
    origin: dict[str, str] = {}
    for _ in range(_DEEPEST):
        branches = [node for node in model.graph.node if node.op_type == "If"]
        if not branches:
            break
        try:
            shown = show(model, list(dict.fromkeys(node.input[0] for node in branches)), given)
        except CopyFailed:
            break
        nodes: list[Any] = []
        taken_names = {name for node in model.graph.node for name in node.output}
        for node in list(model.graph.node):
            inside = [node]
            if node.op_type == "If":
                inside = _taken(model, node, bool(shown[node.input[0]].reshape(-1)[0]), taken_names)
                origin.update({inner.name: origin.get(node.name, node.name) for inner in inside})
            nodes += inside
        copies = [copied(node) for node in nodes]
        del model.graph.node[:]
        model.graph.node.extend(copies)
    return origin


def take_other_side(model: Any, name: str) -> None:
    """Swap the sides of the If of that name."""
    for node in model.graph.node:
        if node.name == name and node.op_type == "If":
            one, other = (each for each in node.attribute if each.name.endswith("_branch"))
            one.name, other.name = other.name, one.name


def _taken(model: Any, node: Any, condition: bool, taken: set[str]) -> list[Any]:
    """The nodes of one side of an If, and copies of its answers under the If's own names."""
    from onnx import helper

    side = next(each.g for each in node.attribute if each.name == ("then_branch" if condition else "else_branch"))
    own = [name for inner in side.node for name in inner.output] + [tensor.name for tensor in side.initializer]
    renamed = {name: f"{node.name}/{name}" for name in own if name in taken}
    taken.update(renamed.get(name, name) for name in own)
    for tensor in side.initializer:
        fresh = model.graph.initializer.add()
        fresh.CopyFrom(tensor)
        fresh.name = renamed.get(tensor.name, tensor.name)
    for value in side.value_info:
        fresh = model.graph.value_info.add()
        fresh.CopyFrom(value)
        fresh.name = renamed.get(value.name, value.name)
    for inner in side.node:
        _rename(inner, renamed)
    answers = [
        helper.make_node("Identity", [renamed.get(inner.name, inner.name)], [outer], name=node.name)
        for inner, outer in zip(side.output, node.output, strict=True)
    ]
    return [*side.node, *answers]


def _rename(node: Any, renamed: Mapping[str, str]) -> None:
    node.input[:] = [renamed.get(name, name) for name in node.input]
    node.output[:] = [renamed.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
            for inner in graph.node:
                _rename(inner, renamed)
            for value in graph.output:
                value.name = renamed.get(value.name, value.name)


def open_loops(model: Any) -> None:
    """Let each outer loop give the inner values of its turns as well."""
    for node in model.graph.node:
        if node.op_type in LOOPS:
            body = next(each.g for each in node.attribute if each.name == "body")
            for inner in list(body.node):
                if gives_tensors(inner):
                    _give_inner_values(node, body, inner)


def _give_inner_values(node: Any, body: Any, inner: Any) -> None:
    import onnx
    from onnx import helper

    for name in filter(None, list(inner.output)):
        shown = f"{name}/shown"
        body.node.append(helper.make_node("Identity", [name], [shown], name=f"{shown}-{node.name}"))
        body.output.append(onnx.ValueInfoProto(name=shown))
        node.output.append(inner_name(node, name))
        for attribute in node.attribute:
            if attribute.name in ("scan_output_axes", "scan_output_directions"):
                attribute.ints.append(0)


def inner_name(node: Any, name: str) -> str:
    """What an inner value of a loop is called outside of it."""
    return f"{node.name}/{name}"


def list_nodes(model: Any, with_loops: bool) -> list[FileNode]:
    """Every node in an order in which values are made before they are read."""
    nodes: list[FileNode] = []
    for node in model.graph.node:
        answers: list[str] = []
        if with_loops and node.op_type in LOOPS:
            inside, answers = _inner_nodes(node)
            nodes += inside
        gives = [name for name in node.output if name and not _is_inner(node, name)]
        nodes.append(FileNode(node.name, node.op_type, (*names_used(node), *answers), tuple(gives), node))
    return nodes


def _is_inner(node: Any, name: str) -> bool:
    return node.op_type in LOOPS and name.startswith(f"{node.name}/")


def _inner_nodes(node: Any) -> tuple[list[FileNode], list[str]]:
    body = next(each.g for each in node.attribute if each.name == "body")
    outer = dict(zip((value.name for value in body.input), node.input, strict=False))
    own = {name: inner_name(node, name) for inner in body.node for name in inner.output}
    named: dict[str, str] = {**outer, **own}
    inside = [
        FileNode(
            inner.name,
            inner.op_type,
            tuple(named.get(name, name) for name in names_used(inner)),
            tuple(own[name] for name in inner.output if name),
            inner,
            node.name,
        )
        for inner in body.node
        if not any(name.endswith("/shown") for name in inner.output)
    ]
    return inside, [own[value.name] for value in body.output if value.name in own]


def first_doubtful_turn(
    nodes: Sequence[FileNode], values: Mapping[str, Array], is_known: Callable[[Array], bool]
) -> dict[str, Array]:
    """The values by name; those of a loop are cut to the first turn in which one is not known, else to its first."""
    inner = {name: node for node in nodes if node.loop for name in node.gives}
    turns: dict[str, int] = {}
    for name, node in inner.items():
        doubtful = (turn for turn, value in enumerate(values.get(name, ())) if not is_known(np.asarray(value)))
        turns[node.loop] = min(turns.get(node.loop, _NO_TURN), next(doubtful, _NO_TURN))
    plain = {name: value for name, value in values.items() if name not in inner}
    for name, node in inner.items():
        turn = turns[node.loop] if turns[node.loop] != _NO_TURN else 0
        if name in values and values[name].ndim and len(values[name]) > turn:
            plain[name] = np.asarray(values[name][turn])
    return plain


def line_in_file(node: Any) -> Source | None:
    """The line that a node's metadata or doc string names."""
    told = {entry.key: entry.value for entry in node.metadata_props}
    if _OURS in told:
        file, _, line = told[_OURS].rpartition(":")
        return Source(file, int(line), text=linecache.getline(str(Path(file).absolute()), int(line)).strip())
    return source_of_stack_text(told.get(_TORCH) or node.doc_string)


def line_in_run(node: FileNode, values: Mapping[str, Array], known: KnownValues) -> Source | None:
    """The line that took what the node takes, or what it gives, and made of it what the file does not have."""
    for names in (node.reads, node.gives):
        taken = {step for name in names if name in values for step in known.find_all(values[name])}
        following = (step for step in known.steps if taken.intersection(step.takes) and step.source is not None)
        missing = next((step for step in following if not _has(values.values(), step.value, known)), None)
        if missing is not None:
            return missing.source
    return None


def _has(values: Iterable[Array], wanted: Array, known: KnownValues) -> bool:
    return any(value.shape == wanted.shape and known.is_same(wanted, value) for value in values)


def find_wrong_weights(model: Any, module: torch.nn.Module) -> frozenset[str]:
    """The names in the file. A weight that was stored under a name of the exporter's own is not looked at."""
    from onnx import numpy_helper

    known = {_plain(name): tensor for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    wrong = []
    for stored in model.graph.initializer:
        tensor = known.get(_plain(stored.name))
        if tensor is not None and not _is_same(numpy_helper.to_array(stored), tensor):
            wrong.append(stored.name)
    return frozenset(wrong)


def may_be_folded(module: torch.nn.Module) -> bool:
    """Whether an exporter may have folded a normalization into the weights of what stands before it."""
    return any(isinstance(each, torch.nn.modules.batchnorm._NormBase) for each in module.modules())


def _is_same(stored: Any, tensor: torch.Tensor) -> bool:
    """Half precision is rounded here and there; anything beyond that is another number."""
    if tuple(stored.shape) != tuple(tensor.shape):
        return False
    expected = to_array(tensor)
    if expected.dtype.kind not in "fiub" or stored.dtype.kind not in "fiub":
        return True
    return bool(np.allclose(stored.astype(np.float64), expected.astype(np.float64), rtol=1e-6, equal_nan=True))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name)


def ancestors(nodes: list[FileNode], stop: FileNode) -> list[FileNode]:
    needed = set(stop.reads)
    found: list[FileNode] = []
    for node in reversed(nodes[: nodes.index(stop)]):
        if needed.intersection(node.gives):
            needed.update(node.reads)
            found.append(node)
    return found[::-1]
