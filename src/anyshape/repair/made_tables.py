"""Regular constants as nodes that make them at any size: see `regular_tables`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.repair.known_shapes import TableEdit
from anyshape.repair.regular_tables import (
    Counting,
    Diagonal,
    find_counting,
    find_diagonal,
    varying_axes,
)

Array = np.ndarray[Any, Any]
Vector = Callable[[Sequence[Expr]], ir.Value]


def write_table(
    arithmetic: Arithmetic, vector: Vector, scalar: Callable[[Expr], ir.Value], edit: TableEdit
) -> ir.Value:
    """The table of an edit as a value of the graph."""
    array = edit.array
    if edit.counted:
        return _positions(arithmetic, vector, scalar, edit)
    kind = ir.DataType.from_numpy(array.dtype)
    varying = varying_axes(array, edit.axes)
    for axis in set(edit.axes) - set(varying):
        array = array.take([0], axis)
    writer = _Tables(arithmetic, scalar, kind)
    shape = list(array.shape)
    if not varying:
        made = arithmetic.typed_constant(array, kind)
    elif len(varying) == 1:
        counting = find_counting(array, varying[0])
        assert counting is not None
        made = writer.counting(counting, array.ndim, edit.axes[varying[0]])
        shape = [1] * array.ndim
    else:
        diagonal = find_diagonal(array, *varying)
        assert diagonal is not None
        made = writer.diagonal(diagonal, array.ndim, edit.axes[varying[0]])
        shape = [1] * array.ndim
    is_whole = all(axis in edit.axes or size == edit.array.shape[axis] for axis, size in enumerate(shape))
    if edit.may_broadcast and is_whole:
        return made
    target = [edit.axes.get(axis, Number(size)) for axis, size in enumerate(edit.array.shape)]
    return writer.typed(arithmetic.add("Expand", made, vector(target)), kind)


def _positions(arithmetic: Arithmetic, vector: Vector, scalar: Callable[[Expr], ir.Value], edit: TableEdit) -> ir.Value:
    """A table of positions: each element of its last axis counts along an axis, or is as in the file."""
    rank, kind = edit.array.ndim, ir.DataType.from_numpy(edit.array.dtype)
    writer = _Tables(arithmetic, scalar, kind)
    target = [edit.axes.get(axis, Number(size)) for axis, size in enumerate(edit.array.shape)]
    shape = vector([*target[:-1], Number(1)])
    parts = []
    for part in range(edit.array.shape[-1]):
        own = edit.array[..., part : part + 1]
        for axis in edit.axes:
            own = own.take([0], axis)
        if part in edit.counted:
            axis = edit.counted[part]
            zero = np.zeros([1] * rank, edit.array.dtype)
            made = writer.counting(Counting(axis, zero, zero + 1), rank, edit.axes[axis])
        else:
            made = arithmetic.typed_constant(own, kind)
        parts.append(writer.typed(arithmetic.add("Expand", made, shape), kind))
    return writer.typed(arithmetic.add("Concat", *parts, axis=rank - 1), kind)


class _Tables:
    """Nodes for tables of one type."""

    def __init__(self, arithmetic: Arithmetic, scalar: Callable[[Expr], ir.Value], kind: ir.DataType) -> None:
        self._arithmetic = arithmetic
        self._scalar = scalar
        self._kind = kind

    def typed(self, value: ir.Value, kind: ir.DataType) -> ir.Value:
        value.type, value.shape = ir.TensorType(kind), None
        return value

    def _places(self, axis: int, rank: int, size: Expr) -> ir.Value:
        """0, 1, 2, … along one axis."""
        constant = self._arithmetic.constant
        counted = self._arithmetic.add("Range", constant(0), self._scalar(size), constant(1))
        counted.shape = None
        shape = constant([-1 if each == axis else 1 for each in range(rank)])
        return self.typed(self._arithmetic.add("Reshape", counted, shape), ir.DataType.INT64)

    def counting(self, table: Counting, rank: int, size: Expr) -> ir.Value:
        made = self._places(table.axis, rank, size)
        if self._kind != ir.DataType.INT64:
            made = self.typed(self._arithmetic.add("Cast", made, to=self._kind), self._kind)
        for op_type, operand, neutral in (("Mul", table.step, 1), ("Add", table.start, 0)):
            if not (operand == neutral).all():
                constant = self._arithmetic.typed_constant(operand.flat[0], self._kind)
                made = self.typed(self._arithmetic.add(op_type, made, constant), self._kind)
        return made

    def diagonal(self, table: Diagonal, rank: int, size: Expr) -> ir.Value:
        rows, columns = self._places(table.rows, rank, size), self._places(table.columns, rank, size)
        distance = self.typed(self._arithmetic.add("Sub", columns, rows), ir.DataType.INT64)
        here = self._arithmetic.add(table.relation, distance, self._arithmetic.constant(table.offset))
        self.typed(here, ir.DataType.BOOL)
        if self._kind == ir.DataType.BOOL:
            return here if bool(table.here) else self.typed(self._arithmetic.add("Not", here), self._kind)
        values = [self._arithmetic.typed_constant(each, self._kind) for each in (table.here, table.there)]
        return self.typed(self._arithmetic.add("Where", here, *values), self._kind)
