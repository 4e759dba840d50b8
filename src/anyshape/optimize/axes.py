"""ReduceSum(x, axes=[-1])  ->  ReduceSum(x, axes=[2]), where the number of axes of x is known.

onnxruntime (1.31) gives another shape than it should for a negative axis of an empty tensor.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from anyshape.optimize.constants import add_integers

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
