"""`anyshape::pack`, `repack`, `unpack` and `pad` in ONNX: gathers and scatters at the steps that count.

`counts`, bool[steps, batch], says which steps of which sequences count; its true places, row by row, stand in the order
in which torch packs.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import opset18 as op


def translate_pack(inputs: ir.Value, lengths: ir.Value) -> Sequence[ir.Value]:
    counts = _counts(_first_size(inputs), lengths)
    sizes = op.ReduceSum(op.Cast(counts, to=ir.DataType.INT64), [1], keepdims=0)
    longest = op.ReduceMax(lengths, keepdims=1)
    return op.GatherND(inputs, _places(counts)), op.Slice(sizes, [0], longest, [0])


def translate_repack(inputs: ir.Value, lengths: ir.Value, rows: ir.Value | int) -> ir.Value:
    return op.GatherND(inputs, _places(_counts(_first_size(inputs), lengths)))


def translate_unpack(data: ir.Value, lengths: ir.Value, steps: ir.Value | int) -> ir.Value:
    wanted = _as_vector(steps)
    shape = op.Concat(wanted, op.Shape(lengths), op.Shape(data, start=1), axis=0)
    nothing = op.Expand(op.CastLike(0.0, data), shape)
    return op.ScatterND(nothing, _places(_counts(wanted, lengths)), data)


def translate_pad(inputs: ir.Value, lengths: ir.Value, value: float, steps: ir.Value | int | None) -> ir.Value:
    assert inputs.shape is not None
    rank = len(inputs.shape)
    given = _first_size(inputs)
    wanted = given if steps is None else _as_vector(steps)
    if steps is not None:
        missing = op.Max(op.Sub(wanted, given), _ints([0]))
        ends = op.Concat(_ints([0] * rank), missing, _ints([0] * (rank - 1)), axis=0)
        inputs = op.Pad(op.Slice(inputs, [0], wanted, [0]), ends)
    counts = op.Unsqueeze(_counts(wanted, lengths), list(range(2, rank))) if rank > 2 else _counts(wanted, lengths)
    return op.Where(counts, inputs, op.CastLike(value, inputs))


def _counts(steps: ir.Value, lengths: ir.Value) -> ir.Value:
    each = op.Range(0, op.Squeeze(steps, [0]), 1)
    return op.Less(op.Unsqueeze(each, [1]), op.Unsqueeze(lengths, [0]))


def _places(counts: ir.Value) -> ir.Value:
    return op.Transpose(op.NonZero(counts), perm=[1, 0])


def _first_size(value: ir.Value) -> ir.Value:
    return op.Shape(value, start=0, end=1)


def _as_vector(size: ir.Value | int) -> ir.Value:
    return _ints([size]) if isinstance(size, int) else op.Reshape(size, [1])


def _ints(values: Sequence[int]) -> ir.Value:
    return op.Constant(value_ints=values)
