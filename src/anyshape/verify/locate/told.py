"""What a file tells about itself: the shape of each value, and what each size is, as expressions of its dims.

The dims get their numbers from the inputs that the file is fed. What cannot be read so is not believed, and not doubted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from anyshape.domain import Expr, evaluate, parse_expr
from anyshape.findings import AnyshapeError
from anyshape.records.verdict import Sizes
from anyshape.runtime.dtypes import Array
from anyshape.verify.locate.opened import FileNode
from anyshape.verify.telling import SIZES

_OURS = "anyshape"
Shape = tuple[int, ...]


class Told:
    """The sizes and shapes that a file tells, at the sizes of some inputs."""

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
        """Whether a size is what the file tells; None where it tells nothing, or there is no value."""
        told = self.sizes.get(name)
        if told is None or value is None:
            return None
        return told.shape == value.shape and bool(np.array_equal(told, value))

    def is_shape_right(self, name: str, value: Array | None) -> bool | None:
        """Whether a value is of the shape that the file tells; None where it tells nothing, or there is no value."""
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
