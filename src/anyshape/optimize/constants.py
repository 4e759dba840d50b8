"""Constants that rules of this room add to a model."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from anyshape.runtime.dtypes import Array


def add_integers(model: ir.Model, prefix: str, numbers: Iterable[int]) -> ir.Value:
    """An int64 vector as a weight of the model; equal vectors with one prefix are one weight."""
    array = np.asarray(list(numbers), dtype=np.int64)
    name = f"{prefix}_{'_'.join(str(number) for number in array)}"
    known = model.graph.initializers.get(name)
    return known if known is not None else add_weight(model, name, array)


def add_weight(model: ir.Model, name: str, array: Array) -> ir.Value:
    """An array as a weight of the model, under a name that no other weight has."""
    tensor = ir.Tensor(array, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    model.graph.register_initializer(value)
    return value


def find_integers(value: ir.Value | None) -> list[int] | None:
    """The numbers of a constant vector or scalar of integers; None for anything else."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or tensor.size > 64:
        return None
    return [int(number) for number in tensor.numpy().reshape(-1)]
