"""The first node of a file whose value is not one that the module computes, and who is at fault there, the file or onnxruntime:
onnx's own reference gives what a node should give for its inputs.

From a wrong output back through values that the module does not know, until those it does know: the earliest node of
that stretch. Values that the file computes in its own way and that come out right again are passed by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anyshape.records.verdict import Fault
from anyshape.runtime.child_messages import Array, dtype_of_ort_type
from anyshape.verify.compare import OutputTolerance, compare_outputs
from anyshape.verify.locate.module_values import KnownValues, is_one_number, union
from anyshape.verify.locate.opened import LOOPS, FileNode
from anyshape.verify.locate.size_facts import Roles, Told

_FOLDED_INTO = ("Conv", "ConvTranspose", "Gemm", "BatchNormalization")


def find_fault(model: Any, node: FileNode, values: Mapping[str, Array], known: KnownValues) -> Fault:
    """FILE if the reference gives for this node what onnxruntime gave, or stops there as it did.

    UNDEFINED if ONNX has no such operator for the types that the node was given, whatever the reference gives for them.
    RUNTIME only if it gives what the module has: the reference itself may be wrong, or have no kernel.
    """
    reads = list(dict.fromkeys(name for name in node.proto.input if name))
    gives = [name for name in node.proto.output if name]
    if node.loop or any(name not in values for name in reads) or list(node.reads) != list(node.proto.input):
        return Fault.UNKNOWN
    actual = [values[name] for name in gives if name in values]
    if not actual and not _is_defined(model, node.proto, values):
        return Fault.UNDEFINED
    try:
        expected = _reference(model, node.proto, {name: values[name] for name in reads}, gives)
    except NotImplementedError:
        return Fault.UNKNOWN
    except Exception:
        return Fault.UNKNOWN if actual else Fault.FILE
    if actual and compare_outputs(expected, actual, [OutputTolerance(name) for name in gives]) is None:
        return Fault.FILE
    return Fault.RUNTIME if all(known.find(array) is not None for array in expected) else Fault.UNKNOWN


def _is_defined(model: Any, node: Any, values: Mapping[str, Array]) -> bool:
    """Whether the ONNX standard has the node's operator for the types of its inputs."""
    import onnx

    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type, opset, ""):
        return True  # another domain has its own rules
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    allowed = {
        each.type_param_str: set(map(dtype_of_ort_type, each.allowed_type_strs)) for each in schema.type_constraints
    }
    for place, name in enumerate(node.input):
        variable = schema.inputs[min(place, len(schema.inputs) - 1)].type_str
        if name and variable in allowed and values[name].dtype.name not in allowed[variable]:
            return False
    return True


def _reference(model: Any, node: Any, given: Mapping[str, Array], gives: list[str]) -> list[Array]:
    from onnx import TensorProto, ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    inputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in given]
    graph = helper.make_graph([node], "one", inputs, [ValueInfoProto(name=name) for name in gives])
    one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return list(ReferenceEvaluator(one).run(None, dict(given)))


@dataclass(frozen=True, eq=False)
class Seen:
    """A file's nodes and the values that they gave for some inputs, beside those of the module."""

    nodes: Sequence[FileNode]
    values: Mapping[str, Array]
    roles: Roles
    known: KnownValues
    told: Told
    wrong_weights: frozenset[str] = frozenset()
    may_be_folded: bool = False
    _steps: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def is_right(self, name: str) -> bool:
        """Whether a value raises no doubt: the module has it too, or it comes from elsewhere than a node on data."""
        if not self._is_computed(name) or self._says_nothing(name):
            return True
        if self.roles.maker[name].op_type in LOOPS and self._is_known_turn_by_turn(name):
            return True
        before = [union(1 << step for step in self.steps_of(read)) for read in self.roles.maker[name].reads]
        if self._is_unchanged(name, before) and not all(map(self._is_known, self.roles.maker[name].reads)):
            return False  # what was to be added to it, say, came out as nothing
        # The same numbers are no proof: the module must have made them out of what this node takes.
        return any(
            all(not among or self.known.follows(step, among) for among in before) for step in self.steps_of(name)
        )

    def _is_unchanged(self, name: str, before: Sequence[int]) -> bool:
        """Whether a node of several inputs gives no more than one of them."""
        own = union(1 << step for step in self.steps_of(name))
        return bool(own) and len(before) > 1 and any(own & among for among in before)

    def _is_known(self, name: str) -> bool:
        return not self._is_computed(name) or bool(self.steps_of(name)) or self._says_nothing(name)

    def _says_nothing(self, name: str) -> bool:
        """One integer throughout, as where a file looks for NaN and finds none: a wrong one shows where it is used."""
        value = self.values.get(name)
        return value is not None and value.dtype.kind in "iub" and is_one_number(value)

    def _is_known_turn_by_turn(self, name: str) -> bool:
        """A loop stacks what its turns give along an axis of its own choice."""
        value = self.values.get(name)
        if value is None or value.ndim == 0 or value.shape[0] == 0:
            return False
        return all(self.known.find(np.asarray(turn)) is not None for turn in value)

    def steps_of(self, name: str) -> tuple[int, ...]:
        """The module's steps that have the content of this value; none for sizes and constants."""
        if name not in self._steps:
            looked_for = name in self.values and (self._is_computed(name) or name in self.roles.data)
            found = self.known.find_all(self.values[name]) if looked_for else ()
            is_data = name in self.roles.data
            self._steps[name] = tuple(step for step in found if self.known.steps[step].is_data or not is_data)
        return self._steps[name]

    def _is_computed(self, name: str) -> bool:
        return name in self.roles.maker and name not in self.roles.constant and name not in self.roles.sizes

    def is_told_right(self, name: str) -> bool | None:
        """Whether a value is what the file itself records of it; None where the file records nothing."""
        found = [
            self.told.is_size_right(name, self.values.get(name)),
            self.told.is_shape_right(name, self.values.get(name)),
        ]
        return None if found == [None, None] else False not in found

    def is_in_shape(self, name: str) -> bool:
        """Whether the module has such a value in this very shape."""
        if (told := self.told.is_shape_right(name, self.values.get(name))) is not None:
            return told
        if name not in self.roles.maker or name not in self.values or self.roles.maker[name].op_type in LOOPS:
            return True
        value = self.values[name]
        shapes = {self.known.steps[step].value.shape for step in self.known.find_all(value)}
        return not shapes or value.shape in shapes


def first_told_wrong(seen: Seen) -> FileNode | None:
    """The earliest node that gives a size, or something of a shape, other than the file itself records."""
    return next((node for node in seen.nodes if any(seen.is_told_right(name) is False for name in node.gives)), None)


def first_with_wrong_weight(seen: Seen, wrong: Iterable[FileNode]) -> FileNode | None:
    """The earliest node on the way to one of these that reads a weight which has other numbers than the module's.

    An exporter may fold a normalization into the weights before it, under the same name: what then comes out is right.
    """
    needed = {name for node in wrong for name in node.gives}
    found = None
    for node in reversed(seen.nodes):
        if needed.intersection(node.gives):
            needed.update(node.reads)
            is_folded = seen.may_be_folded and node.op_type in _FOLDED_INTO and all(map(seen.is_right, node.gives))
            is_around_it = node.op_type in LOOPS and any(each.loop == node.name for each in seen.nodes)
            reads_it = seen.wrong_weights.intersection(node.reads) and not is_around_it
            found = node if reads_it and not is_folded else found
    return found


def first_wrong(seen: Seen, wrong: Iterable[FileNode]) -> FileNode:
    """The earliest node from which doubtful values lead to one of these, which are wrong."""
    waiting = list(wrong)
    region: set[int] = set()
    position = {id(node): index for index, node in enumerate(seen.nodes)}
    answered: dict[str, bool] = {}
    while waiting:
        node = waiting.pop()
        if position[id(node)] in region:
            continue
        region.add(position[id(node)])
        for name in node.reads:
            if name not in answered:
                answered[name] = seen.is_right(name)
            if not answered[name]:
                waiting.append(seen.roles.maker[name])
    return seen.nodes[min(region)]


def first_out_of_shape(seen: Seen, node: FileNode) -> FileNode:
    """The earliest node before this one that gives the module's numbers in a shape that the module does not have.

    For failures of shapes only: a file may well compute in other shapes, and be right.
    """
    waiting, found = [node], [node]
    while waiting:
        for name in waiting.pop().reads:
            if name not in seen.roles.constant and name not in seen.roles.sizes and not seen.is_in_shape(name):
                found.append(seen.roles.maker[name])
                waiting.append(seen.roles.maker[name])
    return min(found, key=seen.nodes.index)


def first_wrong_constant(seen: Seen, node: FileNode) -> FileNode:
    """The earliest node that makes an unknown number for this one out of weights alone; else this one itself."""
    waiting = [name for name in node.reads if name in seen.roles.constant]
    found = [node]
    while waiting:
        name = waiting.pop()
        maker = seen.roles.maker.get(name)
        value = seen.values.get(name)
        if maker is None or maker.op_type == "Constant" or value is None or value.dtype.kind != "f":
            continue
        if seen.known.find(value) is None:
            found.append(maker)
            waiting.extend(maker.reads)
    return min(found, key=seen.nodes.index)
