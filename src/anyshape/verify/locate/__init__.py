"""Where in the file it goes wrong: the first node whose value differs, its line, the frozen size, and whose fault it is.

This file: from a failing trial to the node at fault; None where it is not found, never an error.

Files, in the order in which data flows:

    opened         the graph as one list of nodes, and the user's line behind each
    module_values  every tensor that the module computes
    find           the first node whose value the module does not compute
    size_facts     which values are sizes, and which of them is frozen
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anyshape.processes.idleness import Work
from anyshape.records.verdict import Failure, FailureKind, Fault, Located, Mismatch
from anyshape.runtime.child_messages import Array
from anyshape.runtime.custom_node_plan import every_node, subgraphs
from anyshape.verify.compare import compare_arrays
from anyshape.verify.edge_values import edge_called, with_values
from anyshape.verify.file_copies import CopyFailed, Given, gives_tensors, load_named, show
from anyshape.verify.locate.find import (
    Seen,
    find_fault,
    first_out_of_shape,
    first_told_wrong,
    first_with_wrong_weight,
    first_wrong,
    first_wrong_constant,
)
from anyshape.verify.locate.module_values import KnownValues, watch
from anyshape.verify.locate.opened import (
    LOOPS,
    FileNode,
    ancestors,
    find_wrong_weights,
    first_doubtful_turn,
    line_in_file,
    line_in_run,
    list_nodes,
    may_be_folded,
    open_branches,
    open_loops,
    take_other_side,
)
from anyshape.verify.locate.size_facts import (
    Roles,
    Told,
    earliest_frozen,
    frozen_constant,
    frozen_sizes,
    maker_of_sizes,
)
from anyshape.verify.reference import CallInputs
from anyshape.verify.request import VerifyRequest, file_bytes

__all__ = ["locate"]

_LOCATABLE = (FailureKind.DIFFERS, FailureKind.RAISED, FailureKind.REJECTED)
_MOST_BYTES, _SLIGHT, _SMALL = 1 << 30, 100.0, 64


@dataclass(frozen=True, eq=False)
class _Scene:
    """The inputs at which the file fails, what the module makes of them, and what the file is given."""

    request: VerifyRequest
    failure: Failure
    answers: tuple[Array, ...]
    known: KnownValues
    given: Given


def locate(request: VerifyRequest, path: str, failures: Collection[Failure], smallest: Failure) -> Located | None:
    """The node at fault for the smallest failure; looked for where its values differ enough to be distinguished."""
    if request.options.locate_s <= 0 or smallest.kind not in _LOCATABLE or file_bytes(path) > _MOST_BYTES:
        return None
    work = Work()
    try:
        for failure in _telling(failures, smallest):
            scene = _scene(request, failure, lambda: request.options.locate_s - work.seconds)
            found = None if scene is None else _located(scene, path)
            if found is not None or work.seconds > request.options.locate_s:
                return found
    except Exception:  # whatever a strange file does to a copy of it that nobody will run
        return None
    return None


def _telling(failures: Collection[Failure], smallest: Failure) -> list[Failure]:
    """Failures of the same kind, the likeliest to distinguish values first: random ones, no size of 1, but few elements."""
    kind, mismatch = smallest.kind, _mismatch(smallest)
    alike = [failure for failure in failures if failure.kind is kind and _mismatch(failure) is mismatch]

    def rank(failure: Failure) -> tuple[bool, int, int]:
        ones = sum(size <= 1 for size in failure.sizes.values())
        return failure.values != "random", ones, prod(size + 1 for size in failure.sizes.values())

    return [*sorted(alike, key=rank)[:1], smallest]


def _mismatch(failure: Failure) -> Mismatch | None:
    return failure.difference.mismatch if failure.difference is not None else None


def _scene(request: VerifyRequest, failure: Failure, seconds_left: Callable[[], float]) -> _Scene | None:
    made = request.make(failure.sizes, failure.seed)
    inputs: CallInputs = with_values(made, edge_called(failure.values), request.legal(failure.sizes))
    watched = watch(request.reference, inputs)
    if watched is None:
        return None
    answer, steps = watched
    is_slight = failure.difference is not None and failure.difference.excess < _SLIGHT
    given = Given(request.feeds(inputs), request.operators, seconds_left)
    return _Scene(request, failure, answer.arrays, KnownValues(steps, is_slight), given)


def _located(scene: _Scene, path: str) -> Located | None:
    model = load_named(path)
    outputs = [value.name for value in model.graph.output]
    if len(outputs) != len(scene.answers):
        return None
    opened = copy.deepcopy(model)
    origin = open_branches(opened, scene.given)
    nodes = list_nodes(opened, with_loops=False)
    try:
        seen = _look(scene, opened, nodes, outputs)
    except CopyFailed as failed:
        return _at_the_stop(scene, opened, nodes, failed.node)
    wrong = _wrong_outputs(scene, outputs, seen.values)
    made = [seen.roles.maker[name] for name in wrong if name in seen.roles.maker]
    if not made:
        return None if wrong else _without_a_node(scene)
    if (told := first_told_wrong(seen)) is not None:
        return _described(scene, opened, seen, told, is_origin=True)
    node = first_with_wrong_weight(seen, made) or first_wrong_constant(seen, first_wrong(seen, made))
    if _mismatch(scene.failure) is Mismatch.SHAPE:
        node = _out_of_shape(scene, seen, node)
    if node.name in origin and _is_right_on_the_other_side(scene, model, origin[node.name], outputs):
        node = _condition_of(seen, list_nodes(model, with_loops=False), origin[node.name])
    return _described(scene, opened, seen, node)


def _is_right_on_the_other_side(scene: _Scene, model: Any, name: str, outputs: list[str]) -> bool:
    """Whether the condition of an If is wrong: with its sides swapped the file answers rightly."""
    swapped = copy.deepcopy(model)
    take_other_side(swapped, name)
    try:
        return not _wrong_outputs(scene, outputs, show(swapped, outputs, scene.given))
    except CopyFailed:
        return False


def _condition_of(seen: Seen, nodes: list[FileNode], name: str) -> FileNode:
    """The node that decides which side of an If is taken; the If itself where there is none, or it decides about sizes
    that are right."""
    branch = next(node for node in nodes if node.name == name)
    decides = next((node for node in nodes if branch.proto.input[0] in node.gives), branch)
    is_given_right = all(name in seen.roles.constant or seen.is_told_right(name) for name in decides.reads)
    return branch if is_given_right else decides


def _wrong_outputs(scene: _Scene, outputs: list[str], values: Mapping[str, Array]) -> list[str]:
    def is_wrong(expected: Array, actual: Array) -> bool:
        return compare_arrays(expected, _as_in_file(expected, actual), scene.known.tolerance)[0] is not None

    pairs = zip(outputs, scene.answers, strict=True)
    return [name for name, expected in pairs if is_wrong(expected, values[name])]


def _as_in_file(expected: Array, actual: Array) -> Array:
    """The copy that is run in the place of a bfloat16 file gives single precision."""
    is_wider = expected.dtype.name == "bfloat16" and actual.dtype == np.float32
    return actual.astype(expected.dtype) if is_wider else actual


def _look(scene: _Scene, model: Any, nodes: list[FileNode], wanted: Collection[str]) -> Seen:
    """What the file's nodes give. Loops are opened too, where the runtime can do it. Raises CopyFailed."""
    opened = copy.deepcopy(model)
    open_loops(opened)
    if any(node.op_type in LOOPS for node in opened.graph.node):
        inside = list_nodes(opened, with_loops=True)
        with contextlib.suppress(CopyFailed):
            return _shown(scene, opened, inside, wanted)
    return _shown(scene, model, nodes, wanted)


def _shown(scene: _Scene, model: Any, nodes: list[FileNode], wanted: Collection[str]) -> Seen:
    names = [name for node in nodes if gives_tensors(node.proto) for name in node.gives]
    shown = show(model, list(dict.fromkeys([*wanted, *names])), scene.given)
    return _seen(scene, model, nodes, shown)


def _seen(scene: _Scene, model: Any, nodes: list[FileNode], shown: Mapping[str, Array]) -> Seen:
    from onnx import numpy_helper

    weights = {tensor.name for tensor in model.graph.initializer}
    small = [tensor for tensor in model.graph.initializer if prod(tensor.dims) <= _SMALL]
    values = {
        **{tensor.name: numpy_helper.to_array(tensor) for tensor in small},
        **scene.given.feeds,
        **first_doubtful_turn(nodes, shown, lambda value: _is_known(scene, value)),
    }
    told = Told(model, nodes, scene.given.feeds, scene.failure.sizes)
    roles = Roles(nodes, weights, scene.given.feeds, values, told.sizes)
    wrong = find_wrong_weights(model, scene.request.reference.module)
    return Seen(nodes, values, roles, scene.known, told, wrong, may_be_folded(scene.request.reference.module))


def _at_the_stop(scene: _Scene, model: Any, nodes: list[FileNode], name: str) -> Located | None:
    """The node at which the file stops, or the one before it that gave it something wrong."""
    stop = next((node for node in nodes if node.name == name), None)
    if scene.failure.kind is FailureKind.DIFFERS:
        return None
    if stop is None:
        return _at_the_inner_stop(scene, model, nodes, name)
    try:
        seen = _before(scene, model, nodes, stop)
    except CopyFailed as earlier:
        return _at_the_stop(scene, model, nodes[: nodes.index(stop)], earlier.node)
    if (told := first_told_wrong(seen)) is not None:
        return _described(scene, model, seen, told, is_origin=True)
    if _constant(scene, seen, stop) is not None:
        return _described(scene, model, seen, stop)
    return _described(scene, model, seen, _out_of_shape(scene, seen, first_wrong(seen, [stop])))


def _at_the_inner_stop(scene: _Scene, model: Any, nodes: list[FileNode], name: str) -> Located | None:
    """A node inside a loop or a branch, unless it is the loop that turns a frozen number of times."""
    for outer in nodes:
        inside = (node for graph in subgraphs(outer.proto) for node in every_node(graph))
        inner = next((node for node in inside if node.name == name), None)
        if inner is not None:
            seen = _before(scene, model, nodes, outer)
            if (told := first_told_wrong(seen)) is not None:
                return _described(scene, model, seen, told, is_origin=True)
            frozen = earliest_frozen(outer, seen.roles)
            found = inner if frozen is outer else frozen.proto
            return Located(found.name, found.op_type, line_in_file(inner) or line_in_file(found))
    return None


def _before(scene: _Scene, model: Any, nodes: list[FileNode], stop: FileNode) -> Seen:
    """What the nodes give on which this one depends. Raises CopyFailed."""
    before = ancestors(nodes, stop)
    names = [given for node in before if gives_tensors(node.proto) for given in node.gives]
    return _seen(scene, model, nodes, show(model, names, scene.given) if names else {})


def _described(scene: _Scene, model: Any, seen: Seen, node: FileNode, is_origin: bool = False) -> Located:
    origin = node if is_origin else earliest_frozen(node, seen.roles)
    is_of_shape = scene.failure.kind is not FailureKind.DIFFERS or _mismatch(scene.failure) is Mismatch.SHAPE
    if origin is node and is_of_shape and not is_origin:
        maker = maker_of_sizes(node, seen.roles)
        origin = node if any(seen.is_told_right(name) for name in maker.gives) else maker
    return Located(
        node=origin.name,
        op_type=origin.op_type,
        source=line_in_file(node.proto) or line_in_file(origin.proto) or line_in_run(node, seen.values, seen.known),
        constant=_constant(scene, seen, node),
        fault=find_fault(model, node, seen.values, seen.known),
    )


def _constant(scene: _Scene, seen: Seen, node: FileNode) -> tuple[int, ...] | None:
    frozen = frozen_sizes(scene.request.example, scene.failure.sizes)
    return frozen_constant(node, seen.values, seen.roles, frozen)


def _out_of_shape(scene: _Scene, seen: Seen, node: FileNode) -> FileNode:
    """Where a shape first went wrong; a node that holds a frozen size needs no further explanation."""
    return node if _constant(scene, seen, node) is not None else first_out_of_shape(seen, node)


def _is_known(scene: _Scene, value: Array) -> bool:
    """Whether a loop's value raises no doubt: counters and conditions have no counterpart, and raise none.

    Raises TimeoutError where no time is left: a long loop has thousands of values.
    """
    if scene.given.seconds_left() <= 0:
        raise TimeoutError
    return value.dtype.kind in "iub" or scene.known.find(value) is not None


def _without_a_node(scene: _Scene) -> Located | None:
    """Each node for itself is right: it is what onnxruntime makes of them together, unless the difference is slight."""
    difference = scene.failure.difference
    is_clear = difference is None or difference.excess >= _SLIGHT
    is_measured = scene.request.options.rtol is None and scene.request.options.atol is None
    return Located("", "", fault=Fault.RUNTIME) if is_clear and is_measured else None
