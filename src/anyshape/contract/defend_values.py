"""Add nodes to a graph that fail at values outside the bounds of its contract: by an index out of range.

    ids -> model     ->     ids -> Less, Greater -> number of values outside -> Gather named with the bounds -> 0
                            ids -> Reshape(ids, zeros) -> model

The mechanism is that of `defend`: the Gather looks up the number in a table of one entry and fails where it is 1 or more.
Each element of a bounded input is compared, so a call takes longer by about one pass over the input for each bound.
NaN is neither below nor above a bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from anyshape.contract.defend import Defence, inputs_to_gate, insert_defence, names_in
from anyshape.domain import Expr, dims_of, substitute
from anyshape.domain.bounded_values import Bound, ValueBounds
from anyshape.graphs import places_of, readings_of
from anyshape.records.contract import Contract

_WHOLE = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
_SINGLE = ("float16", "bfloat16", "float32")
_DOUBLE = ("float64", "uint64")
# The comparison that is true outside of the bound.
_OUTSIDE = {
    ">=": ("Less",),
    ">": ("LessOrEqual",),
    "<=": ("Greater",),
    "<": ("GreaterOrEqual",),
    "==": ("Less", "Greater"),
}


def defend_values(model: ir.Model, contract: Contract, names: Collection[str] | None = None) -> int:
    """Add the nodes that refuse values outside the contract; returns how many inputs they check.

    `names` are the inputs to check, None for all that have bounds. A bound by a dim that no axis determines is left out.
    """
    graph = model.graph
    inputs = {value.name: value for value in graph.inputs if value.name}
    checked = [each for each in _checks(contract) if each.name in inputs and (names is None or each.name in names)]
    places = places_of(contract.input_axes, contract.input_numbers)
    gated = inputs_to_gate(graph, [*(place.input for place in places), *(each.name for each in checked)])
    if not checked or not gated:
        return 0
    read = {place for each in checked for place in places if place.key in each.axes}
    defence = Defence(inputs, [place for place in places if place in read], names_in(model), graph.opset_imports[""])
    zero = defence.arithmetic.constant([0])
    for each in checked:
        count = _Comparisons(defence, inputs[each.name], each.dtype).count_outside(each.bounds)
        message = f"anyshape AS421: values of {each.name!r} must keep {each.text}"
        zero = defence.arithmetic.add("Gather", zero, count, name=message)
    insert_defence(graph, defence, gated, zero)
    return len(checked)


@dataclass(frozen=True)
class _Check:
    """The bounds of one input, whose limits are expressions of the keys of places."""

    name: str
    dtype: str
    text: str
    bounds: tuple[Bound, ...]

    @property
    def axes(self) -> set[str]:
        return {key for bound in self.bounds if isinstance(bound.limit, Expr) for key in dims_of(bound.limit)}


def _checks(contract: Contract) -> Iterator[_Check]:
    places = places_of(contract.input_axes, contract.input_numbers)
    axes = {reading.dim: reading.value for reading in readings_of(contract.domain, places)}
    dtypes = {tensor.name: tensor.dtype for tensor in contract.inputs}
    for name, bounds in contract.value_bounds.items():
        if dtypes[name] not in (*_WHOLE, *_SINGLE, *_DOUBLE):
            continue
        found = tuple(
            Bound(bound.symbol, substitute(bound.limit, axes) if isinstance(bound.limit, Expr) else bound.limit)
            for bound in bounds.bounds
            if not isinstance(bound.limit, Expr) or all(dim in axes for dim in dims_of(bound.limit))
        )
        if found:
            yield _Check(name, dtypes[name], bounds.text, found)


class _Comparisons:
    """Writes the comparisons of one input with its bounds."""

    def __init__(self, defence: Defence, value: ir.Value, dtype: str) -> None:
        self._arithmetic = defence.arithmetic
        self._value = value
        self._dtype = dtype
        self._casts: dict[ir.DataType, ir.Value] = {}

    def count_outside(self, bounds: tuple[Bound, ...]) -> ir.Value:
        """A vector of one integer: 0 where every value keeps all bounds."""
        outside = [each for bound in bounds for each in self._outside(bound)]
        if not outside:
            return self._arithmetic.constant([0])
        joined = outside[0]
        for each in outside[1:]:
            joined = self._typed("Or", ir.DataType.BOOL, joined, each)
        # As floats, whose sum does not wrap around.
        total = self._typed("ReduceSum", ir.DataType.FLOAT, self._cast(joined, ir.DataType.FLOAT), keepdims=0)
        total.shape = ir.Shape([])
        count = self._cast(total, ir.DataType.INT64)
        return self._arithmetic.add("Reshape", count, self._arithmetic.constant([1]))

    def _outside(self, bound: Bound) -> Iterator[ir.Value]:
        if isinstance(bound.limit, Expr):
            wide = ir.DataType.INT64 if self._dtype in _WHOLE else ir.DataType.DOUBLE
            limit = self._arithmetic.expr(bound.limit)
            limit = limit if wide is ir.DataType.INT64 else self._cast(limit, wide)
            for op_type in _OUTSIDE[bound.symbol]:
                yield self._typed(op_type, ir.DataType.BOOL, self._as(wide), limit)
            return
        low, high = ValueBounds("", (bound,)).range_at({}, self._dtype)
        kind = self._kind()
        for op_type, end in (("Less", low), ("Greater", high)):
            if math.isfinite(end):
                limit = self._arithmetic.typed_constant([_rounded_inside(end, op_type == "Less", kind)], kind)
                yield self._typed(op_type, ir.DataType.BOOL, self._as(kind), limit)

    def _kind(self) -> ir.DataType:
        """The type in which the values are compared exactly, and for which runtimes have comparisons."""
        if self._dtype in _WHOLE:
            return ir.DataType.INT64
        return ir.DataType.FLOAT if self._dtype in _SINGLE else ir.DataType.DOUBLE

    def _as(self, wanted: ir.DataType) -> ir.Value:
        if self._value.dtype == wanted:
            return self._value
        if wanted not in self._casts:
            self._casts[wanted] = self._cast(self._value, wanted)
        return self._casts[wanted]

    def _cast(self, value: ir.Value, wanted: ir.DataType) -> ir.Value:
        return self._typed("Cast", wanted, value, to=int(wanted))

    def _typed(self, op_type: str, kind: ir.DataType, *inputs: ir.Value, **attributes: int) -> ir.Value:
        made = self._arithmetic.add(op_type, *inputs, name="", size=1, **attributes)
        made.type = ir.TensorType(kind)
        ranks = [value.shape for value in inputs if value.shape is not None]
        made.shape = max(ranks, key=len).copy()
        return made


def _rounded_inside(end: float, is_low: bool, kind: ir.DataType) -> float:
    """The limit as a number of this type: the first one inside, where it is none of them."""
    if kind is ir.DataType.INT64:
        whole = math.ceil(end) if is_low else math.floor(end)
        return min(max(whole, -(2**63)), 2**63 - 1)
    if kind is ir.DataType.DOUBLE:
        return end
    near = np.float32(end)
    is_outside = float(near) < end if is_low else float(near) > end
    return float(np.nextafter(near, np.float32(math.inf if is_low else -math.inf))) if is_outside else float(near)
