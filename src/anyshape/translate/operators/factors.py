"""Factors of matrices: triangular ones, and products of reflections.

Matrices as products: aten::linalg_lu_factor_ex, linalg_lu, lu_unpack, linalg_lu_solve, cholesky_inverse, cholesky_solve
and linalg_matrix_exp; one round of an ONNX `Loop` a column.

torch.onnx (to 2.13) has none of these.

aten::linalg_qr, linalg_householder_product and ormqr: Householder's reflections, one round of an ONNX `Loop` a column.

Signs are LAPACK's: a column's own entry keeps away from the norm that takes its place. torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.linalg import identities, same_batch, substitute, swap_pivot, turn
from anyshape.translate.operators.size_values import Values, as_scalar, constant, count_up, dtype_of, ints, rank, repeat

_INT64, _INT32, _DOUBLE = ir.DataType.INT64, ir.DataType.INT32, ir.DataType.DOUBLE
_TERMS = 18


def translate_lu_factor(
    matrix: ir.Value, *, pivot: bool = True, check_errors: bool = False
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """L below the diagonal and U above in one table, the row that each round swapped with (from 1), the first pivot of 0."""
    if not pivot:
        raise NotImplementedError("LU without pivoting")
    of_rank, dtype = rank(matrix), dtype_of(matrix)
    row_axis, column_axis = of_rank - 2, of_rank - 1
    size = op.Shape(matrix, start=row_axis)
    count = as_scalar(op.ReduceMin(size, ints(0), keepdims=0))
    rows = count_up(as_scalar(op.Shape(matrix, start=row_axis, end=row_axis + 1)))
    columns = count_up(as_scalar(op.Shape(matrix, start=column_axis, end=of_rank)))

    def step(k: ir.Value, table: ir.Value, info: ir.Value) -> Values:
        chosen, swapped = swap_pivot(table, k, rows, of_rank)
        pivot_row = op.Unsqueeze(op.Gather(swapped, k, axis=row_axis), ints(row_axis))
        pivots = op.Gather(pivot_row, op.Reshape(k, ints(1)), axis=column_axis)
        is_zero = op.Equal(pivots, constant(0, dtype))
        below = op.Gather(swapped, op.Reshape(k, ints(1)), axis=column_axis)
        factor = op.Where(is_zero, below, op.Div(below, op.Where(is_zero, constant(1, dtype), pivots)))
        is_below = op.Unsqueeze(op.Greater(rows, k), ints(1))
        reduced = op.Sub(swapped, op.Where(op.Greater(columns, k), op.Mul(factor, pivot_row), constant(0, dtype)))
        reduced = op.Where(op.Equal(columns, k), factor, reduced)
        scalar_zero = op.Squeeze(is_zero, ints(row_axis, column_axis))
        is_new = op.And(scalar_zero, op.Equal(info, constant(0, _INT32)))
        number = op.Cast(op.Add(k, as_scalar(1)), to=_INT32)
        swaps = op.Cast(op.Add(op.Squeeze(chosen, ints(row_axis)), as_scalar(1)), to=_INT32)
        return [op.Where(is_below, reduced, swapped), op.Where(is_new, number, info), swaps]

    batch = op.Shape(matrix, start=0, end=row_axis)
    states = [(matrix, dtype), (op.Expand(constant(0, _INT32), batch), _INT32)]
    table, info, swaps = repeat(count, states, step, collected=1)
    return table, op.Transpose(swaps, perm=[*range(1, of_rank - 1), 0]), info


def translate_lu_factor_checked(matrix: ir.Value, *, pivot: bool = True) -> tuple[ir.Value, ir.Value]:
    """aten::linalg_lu_factor, kept whole: inside, torch checks `info` by an operator that has no result to translate."""
    return translate_lu_factor(matrix, pivot=pivot)[:2]


def translate_lu(matrix: ir.Value, *, pivot: bool = True) -> tuple[ir.Value, ir.Value, ir.Value]:
    table, pivots, _ = translate_lu_factor(matrix, pivot=pivot)
    return _unpack(table, pivots, rank(matrix), dtype_of(matrix))


def translate_lu_unpack(
    table: ir.Value, pivots: ir.Value, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """P, L and U of a factored table; empty where `unpack_data` or `unpack_pivots` is False."""
    dtype = dtype_of(table)
    permutation, lower, upper = _unpack(table, pivots, rank(table), dtype)
    nothing = op.Expand(constant(0, dtype), ints(0))
    return (
        permutation if unpack_pivots else nothing,
        lower if unpack_data else nothing,
        upper if unpack_data else nothing,
    )


def _unpack(table: ir.Value, pivots: ir.Value, of_rank: int, dtype: ir.DataType) -> tuple[ir.Value, ir.Value, ir.Value]:
    row_axis, column_axis = of_rank - 2, of_rank - 1
    size = op.Shape(table, start=row_axis)
    count = op.ReduceMin(size, ints(0), keepdims=1)
    height = as_scalar(op.Shape(table, start=row_axis, end=row_axis + 1))
    rows, columns = count_up(height), count_up(as_scalar(count))
    is_diagonal = op.Equal(op.Unsqueeze(rows, ints(1)), columns)
    left = op.Slice(table, ints(0), count, ints(column_axis))
    lower = op.Where(is_diagonal, constant(1, dtype), op.Trilu(left, upper=0))
    upper = op.Trilu(op.Slice(table, ints(0), count, ints(row_axis)), upper=1)
    order = _order(pivots, rows, of_rank, op.Shape(table, start=0, end=row_axis))
    # Row r of the product is row order[r] of the matrix: a column of the permutation for each r.
    is_there = op.Equal(op.Unsqueeze(order, ints(row_axis)), op.Unsqueeze(rows, ints(1)))
    return op.Cast(is_there, to=dtype), lower, upper


def _order(pivots: ir.Value, rows: ir.Value, of_rank: int, batch: ir.Value) -> ir.Value:
    """Where each row came from, after all swaps: int64[batch, rows]."""
    axis = of_rank - 2
    start = op.Expand(rows, op.Concat(batch, op.Shape(rows), axis=0))

    def swap(k: ir.Value, order: ir.Value) -> Values:
        other = op.Sub(op.Cast(op.Gather(pivots, op.Reshape(k, ints(1)), axis=axis), to=_INT64), as_scalar(1))
        places = op.Where(op.Equal(rows, k), other, op.Where(op.Equal(rows, other), k, rows))
        return [op.GatherElements(order, places, axis=axis)]

    count = op.Min(op.Shape(pivots, start=-1), op.Shape(rows))
    return repeat(as_scalar(count), [(start, _INT64)], swap)[0]


def translate_lu_solve(
    table: ir.Value, pivots: ir.Value, right: ir.Value, *, left: bool = True, adjoint: bool = False
) -> ir.Value:
    """With table = P L U: L, then U is solved; of the transposed matrix U, then L. In float64."""
    of_rank, dtype, wide_rank = rank(table), dtype_of(table), max(rank(table), rank(right))
    permutation, lower, upper = _unpack(op.Cast(table, to=_DOUBLE), pivots, of_rank, _DOUBLE)
    column = op.Cast(right if left else turn(right, rank(right)), to=_DOUBLE)
    lower, column = same_batch(lower, column, wide_rank)
    upper, _ = same_batch(upper, column, wide_rank)
    if adjoint == left:  # the transposed matrix: either by name, or since x A = b is solved as A' x' = b'
        half = substitute(turn(upper, wide_rank), column, wide_rank, upper=False)
        solved = substitute(turn(lower, wide_rank), half, wide_rank, upper=True)
        result = _pick_rows(solved, op.ArgMax(permutation, axis=of_rank - 1, keepdims=1), wide_rank)
    else:
        order = op.ArgMax(turn(permutation, of_rank), axis=of_rank - 1, keepdims=1)
        half = substitute(lower, _pick_rows(column, order, wide_rank), wide_rank, upper=False)
        result = substitute(upper, half, wide_rank, upper=True)
    return op.Cast(result if left else turn(result, wide_rank), to=dtype)


def _pick_rows(matrix: ir.Value, places: ir.Value, of_rank: int) -> ir.Value:
    """A permutation without products: 0 times an infinity is NaN."""
    return op.GatherElements(matrix, op.Expand(places, op.Shape(matrix)), axis=of_rank - 2)


def translate_cholesky_inverse(factor: ir.Value, upper: bool = False) -> ir.Value:
    """inv(L) transposed @ inv(L), from the named triangle alone."""
    lower = _lower(factor, upper)
    inverse = substitute(lower, identities(factor, dtype_of(factor)), rank(factor), upper=False)
    return op.Cast(op.MatMul(turn(inverse, rank(factor)), inverse), to=dtype_of(factor))


def translate_cholesky_solve(right: ir.Value, factor: ir.Value, upper: bool = False) -> ir.Value:
    of_rank, dtype = max(rank(factor), rank(right)), dtype_of(factor)
    lower, column = same_batch(_lower(factor, upper), right, of_rank)
    half = substitute(lower, column, of_rank, upper=False)
    return op.Cast(substitute(turn(lower, of_rank), half, of_rank, upper=True), to=dtype)


def _lower(factor: ir.Value, upper: bool) -> ir.Value:
    return turn(op.Trilu(factor, upper=1), rank(factor)) if upper else op.Trilu(factor, upper=0)


def translate_matrix_exp(matrix: ir.Value) -> ir.Value:
    """Taylor's series of the matrix halved often enough, then squared as often; in float64."""
    of_rank = rank(matrix)
    wide = op.Cast(matrix, to=_DOUBLE)
    norm = op.ReduceMax(op.ReduceSum(op.Abs(wide), ints(of_rank - 1), keepdims=0), keepdims=0)
    halvings = op.Ceil(op.Div(op.Log(op.Max(norm, constant(0.5, _DOUBLE))), constant(math.log(2), _DOUBLE)))
    times = op.Max(op.Add(op.Cast(halvings, to=_INT64), as_scalar(1)), as_scalar(0))
    small = op.Div(wide, op.Pow(constant(2, _DOUBLE), op.Cast(times, to=_DOUBLE)))
    ones = identities(matrix, _DOUBLE)
    total = ones
    for number in range(_TERMS, 0, -1):  # Horner: 1 + A (1 + A/2 (1 + A/3 ...))
        total = op.Add(ones, op.Div(op.MatMul(small, total), constant(number, _DOUBLE)))
    (power,) = repeat(times, [(total, _DOUBLE)], lambda number, current: [op.MatMul(current, current)])
    return op.Cast(power, to=dtype_of(matrix))


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
    """The product of the reflections, with as many columns as there are reflectors."""
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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "linalg_qr": translate_qr,
    "linalg_householder_product": translate_householder_product,
    "ormqr": translate_ormqr,
    "linalg_lu_factor_ex": translate_lu_factor,
    "linalg_lu_factor": translate_lu_factor_checked,
    "linalg_lu": translate_lu,
    "lu_unpack": translate_lu_unpack,
    "linalg_lu_solve": translate_lu_solve,
    "cholesky_inverse": translate_cholesky_inverse,
    "cholesky_solve": translate_cholesky_solve,
    "linalg_matrix_exp": translate_matrix_exp,
}
