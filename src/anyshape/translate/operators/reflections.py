"""aten::linalg_qr, linalg_householder_product and ormqr: Householder's reflections, one round of an ONNX `Loop` a column.

Signs are LAPACK's: a column's own entry keeps away from the norm that takes its place. torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.linalg import turn
from anyshape.translate.operators.loop_nodes import Values, repeat
from anyshape.translate.operators.size_values import as_scalar, constant, count_up, dtype_of, ints, rank

_DOUBLE = ir.DataType.DOUBLE


def _number(value: float) -> ir.Value:
    return constant(value, _DOUBLE)


def _squares(matrix: ir.Value, of_rank: int) -> tuple[ir.Value, ir.Value]:
    """The numbers of the rows, and an identity of that height for every matrix of the batch."""
    height = op.Shape(matrix, start=of_rank - 2, end=of_rank - 1)
    rows = count_up(as_scalar(height))
    ones = op.Cast(op.Equal(op.Unsqueeze(rows, ints(0)), op.Unsqueeze(rows, ints(1))), to=_DOUBLE)
    return rows, op.Expand(ones, op.Concat(op.Shape(matrix, start=0, end=of_rank - 2), height, height, axis=0))


def _apply(matrix: ir.Value, vector: ir.Value, factor: ir.Value, of_rank: int) -> ir.Value:
    """matrix (1 - factor v v'), v a column."""
    return op.Sub(matrix, op.Mul(factor, op.MatMul(op.MatMul(matrix, vector), turn(vector, of_rank))))


def translate_qr(matrix: ir.Value, mode: str = "reduced") -> tuple[ir.Value, ir.Value]:
    of_rank, dtype = rank(matrix), dtype_of(matrix)
    row_axis, column_axis = of_rank - 2, of_rank - 1
    wide = op.Cast(matrix, to=_DOUBLE)
    rows, ones = _squares(matrix, of_rank)
    count = op.ReduceMin(op.Shape(matrix, start=row_axis), ints(0), keepdims=1)
    column_of_rows = op.Unsqueeze(rows, ints(1))

    def step(k: ir.Value, table: ir.Value, product: ir.Value) -> Values:
        column = op.Gather(table, op.Reshape(k, ints(1)), axis=column_axis)
        below = op.Where(op.Greater(column_of_rows, k), column, _number(0))
        own = op.Gather(column, op.Reshape(k, ints(1)), axis=row_axis)
        rest = op.ReduceSum(op.Mul(below, below), ints(row_axis), keepdims=1)
        norm = op.Sqrt(op.Add(rest, op.Mul(own, own)))
        turned = op.Where(op.Less(own, _number(0)), norm, op.Neg(norm))
        is_done = op.Equal(rest, _number(0))
        safe = op.Where(is_done, _number(1), op.Sub(own, turned))
        is_own = op.Cast(op.Equal(column_of_rows, k), to=_DOUBLE)
        vector = op.Add(op.Div(below, safe), is_own)
        factor = op.Where(is_done, _number(0), op.Div(op.Sub(turned, own), op.Where(is_done, _number(1), turned)))
        lowered = op.Sub(table, op.Mul(factor, op.MatMul(vector, op.MatMul(turn(vector, of_rank), table))))
        return [lowered, _apply(product, vector, factor, of_rank)]

    table, product = repeat(as_scalar(count), [(wide, _DOUBLE), (ones, _DOUBLE)], step)
    right = op.Trilu(table, upper=1)
    if mode != "complete":
        product = op.Slice(product, ints(0), count, ints(column_axis))
        right = op.Slice(right, ints(0), count, ints(row_axis))
    left = op.Expand(constant(0, dtype), ints(0)) if mode == "r" else op.Cast(product, to=dtype)
    return left, op.Cast(right, to=dtype)


def _product(reflectors: ir.Value, factors: ir.Value, of_rank: int) -> ir.Value:
    """The whole square product, in float64."""
    rows, ones = _squares(reflectors, of_rank)
    column_of_rows = op.Unsqueeze(rows, ints(1))
    wide, wide_factors = op.Cast(reflectors, to=_DOUBLE), op.Cast(factors, to=_DOUBLE)

    def step(k: ir.Value, product: ir.Value) -> Values:
        column = op.Gather(wide, op.Reshape(k, ints(1)), axis=of_rank - 1)
        below = op.Where(op.Greater(column_of_rows, k), column, _number(0))
        vector = op.Add(below, op.Cast(op.Equal(column_of_rows, k), to=_DOUBLE))
        factor = op.Unsqueeze(op.Gather(wide_factors, op.Reshape(k, ints(1)), axis=of_rank - 2), ints(of_rank - 1))
        return [_apply(product, vector, factor, of_rank)]

    return repeat(as_scalar(op.Shape(factors, start=-1)), [(ones, _DOUBLE)], step)[0]


def translate_householder_product(reflectors: ir.Value, factors: ir.Value) -> ir.Value:
    """As many columns as the reflectors have."""
    of_rank = rank(reflectors)
    product = _product(reflectors, factors, of_rank)
    width = op.Shape(reflectors, start=-1)
    return op.Cast(op.Slice(product, ints(0), width, ints(of_rank - 1)), to=dtype_of(reflectors))


def translate_ormqr(
    reflectors: ir.Value, factors: ir.Value, other: ir.Value, left: bool = True, transpose: bool = False
) -> ir.Value:
    of_rank = rank(reflectors)
    product = _product(reflectors, factors, of_rank)
    product = turn(product, of_rank) if transpose else product
    wide = op.Cast(other, to=_DOUBLE)
    return op.Cast(op.MatMul(product, wide) if left else op.MatMul(wide, product), to=dtype_of(other))
