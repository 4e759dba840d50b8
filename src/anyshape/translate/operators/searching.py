"""aten::searchsorted and bucketize: binary search, a few rounds whatever the sizes, no boundaries at all included.

torch.onnx (to 2.13) has neither at dynamic sizes. NaN counts as the greatest, as in torch.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.loop_nodes import Values, repeat
from anyshape.translate.operators.size_values import (
    POWERS_OF_TWO,
    as_scalar,
    constant,
    count_halvings,
    dtype_of,
    ints,
    rank,
    static_size,
)
from anyshape.translate.operators.sorting import comparable

_FEW = 64
"""So few boundaries are compared with all at once."""


def translate_searchsorted(
    sorted_sequence: ir.Value,
    self: ir.Value | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> ir.Value:
    if sorter is not None:
        sorted_sequence = _sort_by(sorted_sequence, sorter)
    return _search(sorted_sequence, self, is_right=right or side == "right", out_int32=out_int32)


def translate_bucketize(
    self: ir.Value | float, boundaries: ir.Value, *, out_int32: bool = False, right: bool = False
) -> ir.Value:
    return _search(boundaries, self, is_right=right, out_int32=out_int32)


def _sort_by(sequence: ir.Value, sorter: ir.Value) -> ir.Value:
    ordered = op.GatherElements(sequence, sorter, axis=-1)
    ordered.type, ordered.shape = sequence.type, sequence.shape
    return ordered


def _search(sequence: ir.Value, wanted: ir.Value | float, *, is_right: bool, out_int32: bool) -> ir.Value:
    dtype = dtype_of(sequence)
    if not isinstance(wanted, ir.Value):
        wanted = constant(wanted, dtype if dtype.is_floating_point() else ir.DataType.FLOAT)
        dtype = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
        wanted.type, wanted.shape = ir.TensorType(dtype), ir.Shape([])
        sequence_key = comparable(op.Cast(sequence, to=dtype), dtype)
    else:
        sequence_key = comparable(sequence, dtype)
    wanted_key = comparable(wanted, dtype)
    count = static_size(sequence, -1)
    if count is not None and count <= _FEW and rank(sequence) == 1:
        found = _count_below(sequence_key, wanted_key, rank(wanted), is_right=is_right)
    else:
        found = bisect(sequence_key, wanted_key, rank(sequence), count, is_right=is_right)
    return op.Cast(found, to=ir.DataType.INT32) if out_int32 else found


def _is_before(boundary: ir.Value, wanted: ir.Value, *, is_right: bool) -> ir.Value:
    # Not by Less: NaN is behind all boundaries.
    return op.Not(op.Greater(boundary, wanted) if is_right else op.GreaterOrEqual(boundary, wanted))


def _count_below(sequence: ir.Value, wanted: ir.Value, axis: int, *, is_right: bool) -> ir.Value:
    below = _is_before(sequence, op.Unsqueeze(wanted, ints(axis)), is_right=is_right)
    return op.ReduceSum(op.Cast(below, to=ir.DataType.INT64), ints(axis), keepdims=0)


def bisect(sequence: ir.Value, wanted: ir.Value, of_rank: int, known: int | None, *, is_right: bool) -> ir.Value:
    size = as_scalar(op.Shape(sequence, start=-1)) if known is None else as_scalar(known)
    one = constant(1, ir.DataType.INT64)
    none = op.Expand(constant(0, ir.DataType.INT64), op.Shape(wanted))

    def halve(number: ir.Value, low: ir.Value, high: ir.Value) -> Values:
        middle = op.Div(op.Add(low, high), constant(2, ir.DataType.INT64))
        inside = op.Min(middle, op.Sub(size, one))
        value = op.Gather(sequence, inside, axis=0) if of_rank == 1 else op.GatherElements(sequence, inside, axis=-1)
        goes_up = op.And(op.Less(low, high), _is_before(value, wanted, is_right=is_right))
        return op.Where(goes_up, op.Add(middle, one), low), op.Where(goes_up, high, op.Min(middle, high))

    rounds = count_halvings(op.Add(size, one)) if known is None else sum(power < known + 1 for power in POWERS_OF_TWO)
    states = [(none, ir.DataType.INT64), (op.Add(none, size), ir.DataType.INT64)]
    return repeat(rounds, states, halve)[0]
