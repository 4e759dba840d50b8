"""Which of a file's values are mere sizes, what its annotations state about them, and which size is frozen among them.

The dims get their numbers from the inputs that the file is fed. What cannot be read so is not believed, and not doubted.

A size that is computed from an input's shape has no counterpart among the module's tensors: Python computed it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from anyshape.domain import Expr, Sizes, evaluate, parse_expr
from anyshape.findings import AnyshapeError
from anyshape.runtime.child_messages import Array
from anyshape.verify.locate.opened import FileNode
from anyshape.verify.size_annotations import SIZES

_OURS = "anyshape"
Shape = tuple[int, ...]
_ARITHMETIC = frozenset(
    {
        "Gather",
        "Slice",
        "Concat",
        "Squeeze",
        "Unsqueeze",
        "Reshape",
        "Cast",
        "Identity",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "Neg",
        "Max",
        "Min",
        "Abs",
        "Floor",
        "Ceil",
        "Sum",
        "ReduceProd",
        "ReduceSum",
        "ReduceMax",
        "Split",
        "Where",
        "Equal",
        "Less",
        "Greater",
        "Not",
        "And",
        "Or",
    }
)
_LONGEST = 8
_MOST_DIMS = 3
_RANDOM = ("Random", "Bernoulli", "Multinomial")


class Told:
    """The sizes and shapes that a file records, at the sizes of some inputs."""

    def __init__(self, model: Any, nodes: Sequence[FileNode], feeds: Mapping[str, Array], sizes: Sizes) -> None:
        dims = {**sizes, **_read_dims(model, feeds)}
        values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
        self.shapes: dict[str, Shape] = {}
        self.sizes: dict[str, Array] = {}
        # What another exporter writes there is often left over from its example.
        for value in values if model.producer_name == _OURS else ():
            shape = _shape(value, dims)
            if shape is not None:
                self.shapes[value.name] = shape
        for node in nodes:
            if not node.loop:
                self.sizes.update(_sizes(node, dims))

    def is_size_right(self, name: str, value: Array | None) -> bool | None:
        """Whether a size is what the file records; None where it records nothing, or there is no value."""
        told = self.sizes.get(name)
        if told is None or value is None:
            return None
        return told.shape == value.shape and bool(np.array_equal(told, value))

    def is_shape_right(self, name: str, value: Array | None) -> bool | None:
        """Whether a value is of the shape that the file records; None where it records nothing, or there is no value."""
        told = self.shapes.get(name)
        return None if told is None or value is None else told == value.shape


def _read_dims(model: Any, feeds: Mapping[str, Array]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for value in model.graph.input:
        if value.name in feeds:
            declared = value.type.tensor_type.shape.dim
            named = zip(declared, feeds[value.name].shape, strict=False)
            dims.update({dim.dim_param: size for dim, size in named if dim.dim_param.isidentifier()})
    return dims


def _shape(value: Any, dims: Sizes) -> Shape | None:
    if not value.type.tensor_type.HasField("shape"):
        return None
    try:
        return tuple(
            evaluate(parse_expr(dim.dim_param), dims) if dim.dim_param else _number(dim)
            for dim in value.type.tensor_type.shape.dim
        )
    except (AnyshapeError, ValueError):  # a size without a name, or one that no dim tells
        return None


def _number(dim: Any) -> int:
    if not dim.HasField("dim_value"):
        raise ValueError("not told")
    return int(dim.dim_value)


def _sizes(node: FileNode, dims: Sizes) -> dict[str, Array]:
    text = next((entry.value for entry in node.proto.metadata_props if entry.key == SIZES), None)
    if text is None:
        return {}
    with suppress(AnyshapeError, ValueError, TypeError):
        given = [_evaluated(each, dims) for each in json.loads(text)]
        return dict(zip(node.gives, given, strict=True))
    return {}


def _evaluated(plain: Any, dims: Sizes) -> Array:
    if isinstance(plain, list):
        parts = [_evaluated(each, dims) for each in plain]
        return np.stack(parts) if parts else np.zeros(0, np.int64)
    expr: Expr | int = parse_expr(plain) if isinstance(plain, str) else plain
    return np.asarray(expr if isinstance(expr, int) else evaluate(expr, dims), np.int64)


class Roles:
    """`constant`: values that no input reaches. `sizes`: small integers made of shapes alone, and those that the file
    tells to be sizes. `data`: neither shapes nor the file alone made them, but the numbers of an input."""

    def __init__(
        self,
        nodes: Sequence[FileNode],
        weights: set[str],
        inputs: Collection[str],
        values: Mapping[str, Array],
        told: Collection[str] = (),
    ) -> None:
        self.maker = {name: node for node in nodes for name in node.gives}
        self.constant = set(weights)
        self.sizes: set[str] = set()
        self.data = set(inputs)
        for node in nodes:
            if _is_constant(node, self.constant):
                self.constant.update(node.gives)
            elif set(node.gives).issubset(told) or self._is_size(node, values):
                self.sizes.update(node.gives)
            elif self.data.intersection(node.reads):
                self.data.update(node.gives)

    def _is_size(self, node: FileNode, values: Mapping[str, Array]) -> bool:
        if node.op_type in ("Shape", "Size"):
            return True
        if node.op_type not in _ARITHMETIC or not all(_is_small(values.get(name)) for name in node.gives):
            return False
        return all(name in self.constant or name in self.sizes for name in node.reads)


def _is_constant(node: FileNode, constant: set[str]) -> bool:
    if node.op_type == "Constant":
        return True
    is_fed = bool(node.reads) and all(name in constant for name in node.reads)
    return is_fed and not node.loop and not node.op_type.startswith(_RANDOM)


def _is_small(value: Array | None) -> bool:
    return value is not None and value.ndim <= 1 and value.dtype.kind in "iub"


def earliest_frozen(node: FileNode, roles: Roles) -> FileNode:
    """The node where a size first comes from the file alone, above the one that it makes wrong; else that one."""
    seen: set[str] = set()
    waiting = list(node.reads)
    found: list[FileNode] = []
    while waiting:
        name = waiting.pop()
        maker = roles.maker.get(name)
        if name in seen or maker is None:
            continue
        seen.add(name)
        if name in roles.sizes or (name in roles.constant and maker.op_type != "Constant"):
            waiting.extend(maker.reads)
        if name in roles.constant and maker.op_type in _ARITHMETIC:
            found.append(maker)
    return min(found, key=lambda each: list(roles.maker.values()).index(each), default=node)


def maker_of_sizes(node: FileNode, roles: Roles) -> FileNode:
    """The node that computes the sizes which this one takes; this one itself where it takes constant ones as well."""
    if any(name in roles.constant for name in node.reads):
        return node
    makers = (roles.maker[name] for name in node.reads if name in roles.sizes)
    return next((maker for maker in makers if maker.op_type in _ARITHMETIC), node)


def frozen_sizes(example: Sizes, sizes: Sizes) -> set[int]:
    """What a file may hold of its example, and must not: sizes, and products of sizes, that are others here."""
    names = [name for name in example if name in sizes]
    groups = [group for count in range(1, _MOST_DIMS + 1) for group in combinations(names, count)]
    pairs = {(prod(example[name] for name in group), prod(sizes[name] for name in group)) for group in groups}
    return {frozen for frozen, here in pairs if frozen > 1 and frozen != here}


def frozen_constant(
    node: FileNode, values: Mapping[str, Array], roles: Roles, frozen: Collection[int]
) -> tuple[int, ...] | None:
    """The constant integers that a node reads, directly or through sizes, and that hold one of these sizes."""
    seen: set[str] = set()
    waiting = list(node.reads)
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        value = values.get(name)
        if name in roles.constant and _is_small(value) and value is not None and value.dtype.kind == "i":
            numbers = tuple(int(number) for number in np.atleast_1d(value))
            if any(number in frozen for number in numbers) and len(numbers) <= _LONGEST:
                return numbers
        if name in roles.sizes and name in roles.maker:
            waiting.extend(roles.maker[name].reads)
    return None
