"""The sizes of a Reshape as constants: 0 copies the size of an axis, -1 is the one that is left.

Reshape(x, Concat(batch, seq, -1, 64))  ->  Reshape(x, [0, 0, 12, 64])    for x: [batch, seq, 768]

The shapes of input and output, as expressions of the dims, decide. -1 beside a copied size needs that size to be at least
1: onnxruntime cannot divide by a product that is 0.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from anyshape.optimize.constants import find_integers


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
