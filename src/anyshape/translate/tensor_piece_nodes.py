"""Pieces of a tensor at computed places, in ONNX: `Gather`, `Slice`, and `Concat` around what is put in."""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

_END = 2**62


def translate_pick(tensor: ir.Value, axis: int, index: Any) -> ir.Value:
    """x.select(axis, index)"""
    return op.Gather(tensor, _scalar(index), axis=axis)


def translate_cut(tensor: ir.Value, axis: int, start: Any, size: Any, step: int) -> ir.Value:
    """`size` elements from `start` on, `step` apart."""
    first = _vector(start)
    length = _vector(size) if step == 1 else op.Mul(_vector(size), _numbers([step]))
    return op.Slice(tensor, first, op.Add(first, length), _numbers([axis]), _numbers([step]))


def translate_put(tensor: ir.Value, source: ir.Value, axis: int, index: Any) -> ir.Value:
    """x with x.select(axis, index) replaced."""
    return _replaced(tensor, op.Unsqueeze(source, _numbers([axis])), axis, _vector(index), _numbers([1]))


def translate_put_slice(tensor: ir.Value, source: ir.Value, axis: int, start: Any) -> ir.Value:
    """x with as many elements replaced as there are, from `start` on."""
    return _replaced(tensor, source, axis, _vector(start), op.Shape(source, start=axis, end=axis + 1))


def _replaced(tensor: ir.Value, source: ir.Value, axis: int, start: ir.Value, size: ir.Value) -> ir.Value:
    before = op.Slice(tensor, _numbers([0]), start, _numbers([axis]))
    after = op.Slice(tensor, op.Add(start, size), _numbers([_END]), _numbers([axis]))
    return op.Concat(before, source, after, axis=axis)


def _numbers(values: list[int]) -> ir.Value:
    return op.Constant(value=ir.tensor(values, dtype=ir.DataType.INT64))


def _scalar(value: Any) -> ir.Value:
    return op.Constant(value=ir.tensor(value, dtype=ir.DataType.INT64)) if isinstance(value, int) else op.Squeeze(value)


def _vector(value: Any) -> ir.Value:
    return _numbers([value]) if isinstance(value, int) else op.Reshape(value, _numbers([1]))
