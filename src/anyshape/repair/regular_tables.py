"""Constants whose values follow a pattern, so that they can be made at any size: ranges, causal masks, equal rows.

A table is regular along axes if, along each of them, it is the same everywhere, or counts up in equal steps, or if along
two of them it has one value on one side of a diagonal and another one on the other. At least three sizes are needed to see a
pattern that changes along an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyshape.domain import Expr

Array = np.ndarray[Any, Any]
_FEWEST = 3


@dataclass(frozen=True)
class Counting:
    """`start + step*i` along one axis; both have the other axes of the table, and size 1 along this one."""

    axis: int
    start: Array
    step: Array


@dataclass(frozen=True)
class Diagonal:
    """`here` where `column - row` is in relation `relation` to `offset`, else `there`; both are single values.

    `relation` is an operator of ONNX: Less, Equal or Greater.
    """

    rows: int
    columns: int
    relation: str
    offset: int
    here: Array
    there: Array


def is_regular(array: Array, axes: Mapping[int, Expr]) -> bool:
    """Whether the table can be made at other sizes of these axes."""
    varying = varying_axes(array, axes)
    if not varying:
        return True
    if len(varying) == 1:
        return find_counting(array, varying[0]) is not None
    return len(varying) == 2 and axes[varying[0]] == axes[varying[1]] and find_diagonal(array, *varying) is not None


def varying_axes(array: Array, axes: Iterable[int]) -> list[int]:
    """Those of the axes along which the values differ."""
    return [axis for axis in axes if not _equal(array, array.take([0], axis))]


def find_counting(array: Array, axis: int) -> Counting | None:
    """The same whole steps along the axis everywhere, exactly; None where there are none.

    Other steps (`i/10` of ten) may depend on the size themselves.
    """
    if array.shape[axis] < _FEWEST or array.dtype.kind not in "iuf":
        return None
    start, second = array.take([0], axis), array.take([1], axis)
    step = second - start
    if (start != start.flat[0]).any() or (step != step.flat[0]).any() or start.flat[0] % 1 or step.flat[0] % 1:
        return None
    places = np.arange(array.shape[axis]).astype(array.dtype)
    places = places.reshape([-1 if each == axis else 1 for each in range(array.ndim)])
    return Counting(axis, start, step) if _equal(array, start + step * places) else None


def has_pattern(array: Array, axis: int) -> bool:
    """Whether the values are the same along the axis, or nearly in equal steps: as if they were made for its size."""
    if not varying_axes(array, [axis]):
        return True
    if array.shape[axis] < _FEWEST or array.dtype.kind not in "iuf":
        return array.dtype.kind == "b"
    steps = np.diff(array.astype(np.float64), axis=axis)
    with np.errstate(invalid="ignore"):
        return bool(
            np.allclose(steps, steps.take([0], axis), rtol=1e-3, atol=1e-6 * max(1.0, float(np.abs(steps).max())))
        )


def find_diagonal(array: Array, rows: int, columns: int) -> Diagonal | None:
    """Two values, parted by a diagonal near the main one; None where the table is not like that."""
    size = array.shape[rows]
    if size < _FEWEST or array.shape[columns] != size or len(np.unique(_as_bits(array))) != 2:
        return None
    rest = [axis for axis in range(array.ndim) if axis not in (rows, columns)]
    if varying_axes(array, rest):
        return None
    flat = np.moveaxis(array, (rows, columns), (-2, -1)).reshape(-1, size, array.shape[columns])[0]
    distance = np.arange(size)[None, :] - np.arange(size)[:, None]
    for offset in (0, 1, -1):
        for relation, here in (
            ("Less", distance < offset),
            ("Greater", distance > offset),
            ("Equal", distance == offset),
        ):
            if here.any() and not here.all():
                values = flat[here][0], flat[~here][0]
                if _equal(flat, np.where(here, *values).astype(array.dtype)):
                    return Diagonal(rows, columns, relation, offset, np.asarray(values[0]), np.asarray(values[1]))
    return None


def _equal(one: Array, other: Array) -> bool:
    left, right = np.broadcast_arrays(_as_bits(one), _as_bits(other))
    return bool(np.array_equal(left, right))


def _as_bits(array: Array) -> Array:
    """Floats as integers of their width: NaN and the sign of zero count."""
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return array
