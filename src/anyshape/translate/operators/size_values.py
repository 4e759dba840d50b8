"""Functions that all translations use: sizes, axes and constants as ONNX values, and `Loop` and `If` with bodies.

A size in an ATen argument is a Python int or a scalar ONNX value; both are taken wherever `Size` stands. Values that an
ONNX operator gave have no dtype yet, so constants beside them are made with the dtype that is wanted.

A body's calls of `op` go to a recorder of their own. What it uses of the graph around it is used by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import onnxscript.evaluator
from onnxscript import opset18 as op

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

Size = int | ir.Value

WHOLE = 2**63 - 1
"""The end of a slice that goes to the end."""

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Whose sums, counts and quotients may be too large for them, or too coarse: computed in float32, as torch does."""

POWERS_OF_TWO = tuple(2**exponent for exponent in range(62))


def rank(value: ir.Value) -> int:
    if value.shape is None:
        raise ValueError(f"the rank of {value.name} is not known")
    return len(value.shape)


def dtype_of(value: ir.Value) -> ir.DataType:
    if value.dtype is None:
        raise ValueError(f"the dtype of {value.name} is not known")
    return value.dtype


def static_size(value: ir.Value, axis: int) -> int | None:
    """The size of an axis, where it is the same in every call."""
    size = value.shape[axis] if value.shape is not None else None
    return size if isinstance(size, int) else None


def positive(axis: int, of_rank: int) -> int:
    return axis % max(of_rank, 1)


def constant(number: Any, dtype: ir.DataType) -> ir.Value:
    """A constant of any shape, in exactly this dtype."""
    return op.Constant(value=ir.tensor(number, dtype=dtype))


def ints(*sizes: Size) -> ir.Value:
    """int64[len(sizes)]."""
    if all(isinstance(size, int) for size in sizes):
        return constant(list(sizes), ir.DataType.INT64)
    return op.Concat(*(as_vector(size) for size in sizes), axis=0)


def as_vector(size: Size) -> ir.Value:
    """int64[1]."""
    return constant([size], ir.DataType.INT64) if isinstance(size, int) else op.Reshape(size, ints(1))


def flattened(value: ir.Value) -> ir.Value:
    """All elements along one axis."""
    flat = op.Reshape(value, ints(-1))
    flat.type, flat.shape = value.type, ir.Shape([None])
    return flat


def as_scalar(size: Size) -> ir.Value:
    """int64, without axes."""
    return constant(size, ir.DataType.INT64) if isinstance(size, int) else op.Reshape(size, _no_axes())


def _no_axes() -> ir.Value:
    return op.Constant(value=ir.Tensor(_empty_int64()))


def _empty_int64() -> Any:
    import numpy as np

    return np.zeros((0,), dtype=np.int64)


def size_vector(value: ir.Value, axis: int) -> ir.Value:
    """The size of an axis, int64[1]."""
    size = static_size(value, axis) if value.shape is not None else None
    if size is not None:
        return as_vector(size)
    return op.Shape(value, start=axis, end=axis + 1) if axis != -1 else op.Shape(value, start=-1)


def size_scalar(value: ir.Value, axis: int) -> ir.Value:
    return as_scalar(op.Squeeze(size_vector(value, axis)))


def count_up(size: Size) -> ir.Value:
    """0, 1, ... size - 1."""
    return op.Range(as_scalar(0), as_scalar(size), as_scalar(1))


def along(vector: ir.Value, axis: int, of_rank: int) -> ir.Value:
    """A vector, shaped to be broadcast along one axis."""
    return op.Reshape(vector, ints(*(-1 if place == axis else 1 for place in range(of_rank))))


def slice_axis(value: ir.Value, start: Size, end: Size, axis: int) -> ir.Value:
    return op.Slice(value, as_vector(start), as_vector(end), ints(axis), ints(1))


def squeeze_both(one: ir.Value, other: ir.Value, axis: int, keepdim: bool) -> tuple[ir.Value, ir.Value]:
    """Both without the axis, of size 1; with it where it is to be kept."""
    return (one, other) if keepdim else (op.Squeeze(one, ints(axis)), op.Squeeze(other, ints(axis)))


def shape_of(value: ir.Value, start: int, end: int) -> list[ir.Value]:
    """The sizes of some axes, for a Concat; nothing where there are none.

    Not by Slice: onnxscript's optimizer makes one Split of neighbouring slices, also where one of them is empty.
    """
    return [op.Shape(value, start=start, end=end)] if start < end else []


def count_halvings(size: Size) -> ir.Value:
    """How often a doubling width, from 1, stays below `size`: the rounds of a binary search or of a doubling scan."""
    below = op.Less(ints(*POWERS_OF_TWO), as_vector(size))
    return op.ReduceSum(op.Cast(below, to=ir.DataType.INT64), ints(0), keepdims=0)


def lowest(dtype: ir.DataType) -> Any:
    """What no value is below."""
    return _bound(dtype, highest=False)


def highest(dtype: ir.DataType) -> Any:
    return _bound(dtype, highest=True)


def _bound(dtype: ir.DataType, *, highest: bool) -> Any:
    import numpy as np

    if dtype == ir.DataType.BOOL:
        return highest
    if dtype.is_floating_point():
        return float("inf") if highest else float("-inf")
    info = np.iinfo(dtype.numpy())
    return int(info.max if highest else info.min)


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


Values = Sequence[ir.Value]


def repeat(
    count: Size, states: Sequence[tuple[ir.Value, ir.DataType]], body: Callable[..., Values], collected: int = 0
) -> Values:
    """`body(number of the round, *states)` gives the new states, then `collected` values that are stacked on axis 0."""
    number, goes_on = _value("number", ir.DataType.INT64), _value("goes_on", ir.DataType.BOOL)
    number.shape = goes_on.shape = ir.Shape([])
    current = [_value(f"state_{place}", dtype) for place, (_, dtype) in enumerate(states)]
    nodes, results = _record(lambda: [op.Identity(goes_on), *body(number, *current)])
    graph = _graph("loop", [number, goes_on, *current], results, nodes)
    node = ir.node(
        "Loop",
        [as_scalar(count), constant(True, ir.DataType.BOOL), *(value for value, _ in states)],
        {"body": graph},
        num_outputs=len(states) + collected,
    )
    onnxscript.evaluator.default().nodes.append(node)  # torch.onnx's recorder; its own `Loop` has but one output
    return node.outputs


def choose(
    condition: ir.Value, then: Callable[[], Values], otherwise: Callable[[], Values], outputs: int = 1
) -> Values:
    """One of two ways, by a condition that is known at run time."""
    branches = {}
    for name, way in (("then_branch", then), ("else_branch", otherwise)):
        nodes, results = _record(way)
        branches[name] = _graph(name, [], results, nodes)
    node = ir.node("If", [condition], branches, num_outputs=outputs)
    onnxscript.evaluator.default().nodes.append(node)
    return node.outputs


def accumulate(
    states: Sequence[tuple[ir.Value, ir.DataType]],
    axis: int,
    size: Size,
    of_rank: int,
    combine: Callable[[Values, Values], Values],
) -> Values:
    """Every prefix of an axis combined: combine(combine(x0, x1), x2) ... for a `combine` that is associative.

    Each round combines what lies twice as far apart as in the round before: log2(size) rounds over the whole tensor.
    """
    places = count_up(size)

    def double(width: ir.Value, current: Values) -> Values:
        earlier = op.Max(op.Sub(places, width), constant(0, ir.DataType.INT64))
        has_earlier = along(op.GreaterOrEqual(places, width), axis, of_rank)
        combined = combine([op.Gather(value, earlier, axis=axis) for value in current], current)
        return [op.Where(has_earlier, new, old) for new, old in zip(combined, current, strict=True)]

    if isinstance(size, int):
        current: Values = [value for value, _ in states]
        width = 1
        while width < size:
            current = double(as_scalar(width), current)
            width *= 2
        return [op.Identity(value) for value in current]
    width_state = (as_scalar(1), ir.DataType.INT64)
    doubled = repeat(
        count_halvings(size),
        [width_state, *states],
        lambda number, width, *current: [op.Add(width, width), *double(width, current)],
    )
    return doubled[1:]


def _record(build: Callable[[], Values]) -> tuple[list[ir.Node], Values]:
    outer = onnxscript.evaluator.default()
    inner = type(outer)(outer.opset, {})
    with onnxscript.evaluator.default_as(inner):
        results = [op.Identity(result) for result in build()]  # an output must be made inside
    return inner.nodes, results


def _graph(name: str, inputs: Values, outputs: Values, nodes: Sequence[ir.Node]) -> ir.Graph:
    graph = ir.Graph(inputs, outputs, nodes=nodes, name=name)
    for number, value in enumerate([*inputs, *(output for node in nodes for output in node.outputs)]):
        value.name = f"{name}_{number}"  # a name of the graph around it would hide that value from ONNX
    return graph


def _value(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype))
