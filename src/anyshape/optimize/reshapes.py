"""Numbers of axes and sizes as constants, where the shapes are known.

ReduceSum(x, axes=[-1])                 ->  ReduceSum(x, axes=[2])
Reshape(x, Concat(batch, seq, -1, 64))  ->  Reshape(x, [0, 0, 12, 64])    for x: [batch, seq, 768]

onnxruntime (1.31) gives another shape than it should for a negative axis of an empty tensor. Of a Reshape, the shapes of input
and output, as expressions of the dims, decide; -1 beside a copied size needs that size to be at least 1: onnxruntime cannot
divide by a product that is 0.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from anyshape.optimize.constants import add_integers, find_integers

_CASTS = ("Cast", "CastLike")


def count_axes_from_the_front(model: ir.Model) -> int:
    """Makes the axes of reductions positive. Says how many nodes were changed."""
    changed = 0
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if not node.op_type.startswith("Reduce") or len(node.inputs) < 2:
            continue
        data, axes = node.inputs[0], node.inputs[1]
        rank = _rank(data)
        if rank is None or axes is None or axes.const_value is None:
            continue
        counted = axes.const_value.numpy()
        if (counted >= 0).all():
            continue
        positive = np.where(counted < 0, counted + rank, counted)
        node.replace_input_with(1, add_integers(model, "axes", positive.reshape(-1)))
        changed += 1
    return changed


def _rank(value: ir.Value | None) -> int | None:
    """How many axes a value has; one that was only cast has those of what it was cast from."""
    while value is not None and value.shape is None:
        maker = value.producer()
        value = maker.inputs[0] if maker is not None and maker.op_type in _CASTS else None
    return None if value is None or value.shape is None else len(value.shape)


def fixed_sizes(node: ir.Node, never_empty: Collection[str]) -> list[int] | None:
    """The constants, where there are such and they are not there yet."""
    value, given = node.inputs[0], node.outputs[0]
    if value is None or value.shape is None or given.shape is None or find_integers(node.inputs[1]) is not None:
        return None
    before = [_text(size) for size in value.shape]
    sizes: list[int] = []
    for place, size in enumerate(_text(size) for size in given.shape):
        if size is None:
            sizes.append(-1)
        elif place < len(before) and before[place] == size:
            sizes.append(0)
        elif isinstance(size, int) and size > 0:
            sizes.append(size)
        else:
            sizes.append(-1)
    copied = [before[place] for place, size in enumerate(sizes) if size == 0]
    if sizes.count(-1) > 1 or (-1 in sizes and not all(_is_never_empty(size, never_empty) for size in copied)):
        return None
    return [_size if _size else _plain(before[place]) for place, _size in enumerate(sizes)]


def _text(size: int | ir.SymbolicDim) -> int | str | None:
    return size if isinstance(size, int) else size.value


def _plain(size: int | str | None) -> int:
    """A static size is written as itself, any other as a copy."""
    return size if isinstance(size, int) else 0


def _is_never_empty(size: int | str | None, never_empty: Collection[str]) -> bool:
    return size > 0 if isinstance(size, int) else size in never_empty
