"""Inputs of a file made from its contract alone: shapes at given sizes, values within its bounds. No model is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anyshape.domain import Sizes, evaluate
from anyshape.records.contract import Contract, TensorPromise
from anyshape.runtime.dtypes import Array, dtype_called

Kinds = Mapping[str, int]
"""By input: the number of rows of the smallest table that its integers pick from."""


def shapes_at(contract: Contract, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of each input at these sizes; an axis that follows no dim is 1."""
    return {
        name: tuple(1 if axis is None else evaluate(axis, sizes) for axis in axes)
        for name, axes in contract.input_axes.items()
    }


def bytes_at(contract: Contract, sizes: Sizes) -> int:
    """How many bytes the inputs have together at these sizes."""
    shapes = shapes_at(contract, sizes)
    return sum(math.prod(shapes[tensor.name]) * _dtype(tensor).itemsize for tensor in contract.inputs)


def make_inputs(
    contract: Contract,
    sizes: Sizes,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    rows: Kinds | None = None,
) -> dict[str, Array]:
    """Random inputs at these sizes; with `shapes`, of these shapes. `rows` limits integers that have no bounds."""
    random = np.random.default_rng(seed)
    own = shapes or shapes_at(contract, sizes)
    return {
        tensor.name: _draw(tensor, own[tensor.name], value_range(contract, tensor, sizes, rows), random)
        for tensor in contract.inputs
    }


def value_range(
    contract: Contract, tensor: TensorPromise, sizes: Sizes, rows: Kinds | None = None
) -> tuple[float, float]:
    """The lowest and the highest value of an input: its bounds, and for integers without an upper one a small range."""
    bounds = contract.value_bounds.get(tensor.name)
    low, high = (-math.inf, math.inf) if bounds is None else bounds.range_at(sizes, tensor.dtype)
    if _dtype(tensor).kind in "iu":
        low = low if math.isfinite(low) else min(0.0, high)
        high = high if math.isfinite(high) else low + (rows or {}).get(tensor.name, 2) - 1
    return low, high


def _draw(tensor: TensorPromise, shape: Sequence[int], ends: tuple[float, float], random: np.random.Generator) -> Array:
    dtype, (low, high) = _dtype(tensor), ends
    if dtype.kind == "O":
        return np.full(shape, "text", dtype=object)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        return random.integers(int(low), int(high) + 1, shape).astype(dtype)
    values = random.standard_normal(shape)
    if math.isfinite(low) and math.isfinite(high):
        values = low + (high - low) * random.random(shape)
    elif math.isfinite(low) or math.isfinite(high):
        values = low + np.abs(values) if math.isfinite(low) else high - np.abs(values)
    if dtype.kind == "c":
        return (values + 1j * random.standard_normal(shape)).astype(dtype)
    return np.clip(values, low, high).astype(dtype)


def _dtype(tensor: TensorPromise) -> np.dtype[Any]:
    return dtype_called("object" if tensor.dtype == "string" else tensor.dtype)
