"""Edits -> nodes: expressions of the dims, read from the inputs' shapes, in the place of the constants of a graph.

Regular constants become nodes that compute them at any size. All new nodes stand before the first node of the graph: they
need its inputs alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from anyshape.domain import Dim, Domain, Expr, Number, dims_of, format_expr
from anyshape.graphs import places_of, readings_of
from anyshape.graphs.arithmetic import Arithmetic
from anyshape.repair.known_constants import Counting, Diagonal, find_counting, find_diagonal, varying_axes
from anyshape.repair.known_shapes import Axes, Edit, IntsEdit, TableEdit, is_open

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


class SizeWriter:
    """Writes sizes as nodes; what was written once is used again."""

    def __init__(self, model: ir.Model, inputs: Mapping[str, Axes]) -> None:
        self._inputs = {str(value.name): value for value in model.graph.inputs}
        places = places_of(inputs)
        names = dict.fromkeys(name for place in places for name in dims_of(place.expr))
        self._places = {place.key: place for place in places}
        self._readings = {each.dim: each for each in readings_of(Domain(tuple(Dim(name) for name in names)), places)}
        taken = {str(value.name) for graph in model.graphs() for value in _values(graph)}
        self.arithmetic = Arithmetic(self._leaf, taken)

    def _leaf(self, name: str) -> ir.Value:
        if name not in self._places:
            return self.arithmetic.expr(self._readings[name].value)
        place = self._places[name]
        value = self._inputs[place.input]
        shape = self.arithmetic.add("Shape", value, size=len(value.shape or ()))
        return self.arithmetic.add("Gather", shape, self.arithmetic.constant([place.axis]), axis=0)

    def vector(self, exprs: Sequence[Expr]) -> ir.Value:
        """An int64 vector of these sizes."""
        if not any(map(is_open, exprs)):
            return self.arithmetic.constant([each.value for each in exprs if isinstance(each, Number)])
        parts = [self.arithmetic.expr(each) for each in exprs]
        return parts[0] if len(parts) == 1 else self.arithmetic.add("Concat", *parts, size=len(parts), axis=0)

    def scalar(self, expr: Expr) -> ir.Value:
        """The expression as an int64 without axes."""
        found = self.arithmetic.add("Reshape", self.vector((expr,)), self.arithmetic.constant(np.zeros(0)))
        found.shape = ir.Shape(())
        return found


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


@contextlib.contextmanager
def with_edits(
    model: ir.Model, edits: Sequence[Edit], inputs: Mapping[str, Axes], outputs: Mapping[str, Axes]
) -> Iterator[ir.Model]:
    """The model with the edits made and its shapes declared, as long as the block runs."""
    graph = model.graph
    writer = SizeWriter(model, inputs)
    before = [(edit.node, edit.index, edit.node.inputs[edit.index]) for edit in edits]
    unused: list[ir.Value] = []
    shapes = [(value, value.shape) for each in model.graphs() for value in _values(each)]
    try:
        for edit in edits:
            edit.node.replace_input_with(edit.index, _replacement(writer, edit))
        for each in writer.arithmetic.initializers:
            graph.register_initializer(each)
        unused = [old for _, _, old in before if old is not None and _is_left_over(old, graph)]
        for value in unused:
            graph.initializers.pop(str(value.name), None)
        if writer.arithmetic.nodes:
            graph.insert_before(graph[0], writer.arithmetic.nodes)
        _declare(model, inputs, outputs)
        yield model
    finally:
        for node, index, old in before:
            node.replace_input_with(index, old)
        graph.remove([node for node in writer.arithmetic.nodes if node.graph is graph], safe=False)
        for each in writer.arithmetic.initializers:
            graph.initializers.pop(str(each.name), None)
        for value in unused:
            graph.initializers[str(value.name)] = value
        for value, shape in shapes:
            value.shape = shape


def _is_left_over(value: ir.Value, graph: ir.Graph) -> bool:
    """Whether the value is a constant that nothing uses any more."""
    is_own = graph.initializers.get(str(value.name)) is value
    return is_own and not value.uses() and not value.is_graph_output() and not value.is_graph_input()


def _replacement(writer: SizeWriter, edit: Edit) -> ir.Value:
    if not isinstance(edit, IntsEdit):
        return write_table(writer.arithmetic, writer.vector, writer.scalar, edit)
    value = writer.scalar(edit.exprs[0]) if edit.is_scalar else writer.vector(edit.exprs)
    old = edit.node.inputs[edit.index]
    if old is None or old.dtype != ir.DataType.INT32:
        return value
    cast = writer.arithmetic.add("Cast", value, to=ir.DataType.INT32)
    cast.type, cast.shape = ir.TensorType(ir.DataType.INT32), value.shape
    return cast


def _declare(model: ir.Model, inputs: Mapping[str, Axes], outputs: Mapping[str, Axes]) -> None:
    """Names of dims at inputs and outputs; the shapes of inner values, which were those of one size, are left out."""
    ends = {id(value) for value in (*model.graph.inputs, *model.graph.outputs)}
    for graph in model.graphs():
        for value in _values(graph):
            if id(value) not in ends and value.const_value is None:
                value.shape = None
    for values, axes in ((model.graph.inputs, inputs), (model.graph.outputs, outputs)):
        for value in values:
            if str(value.name) in axes:
                value.shape = ir.Shape([_size(axis) for axis in axes[str(value.name)]])


def _size(axis: Expr) -> int | str:
    return axis.value if isinstance(axis, Number) else format_expr(axis)
