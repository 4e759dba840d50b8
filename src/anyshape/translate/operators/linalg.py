"""Linear systems, inverses and determinants by elimination.

Gauss-Jordan elimination with partial pivoting, substitution into a triangle, and Cholesky's columns: one round of an
ONNX `Loop` a column.

Each round works on the whole batch of matrices. A pivot of 0 gives inf or NaN and the column's number in `info`; the rows
below it stay as they are, as in LAPACK's factors.

aten::linalg_inv_ex, _linalg_solve_ex, linalg_solve_triangular, _linalg_slogdet and linalg_cholesky_ex.

Where torch raises for a singular matrix, the file answers inf or NaN; `info` says the same as torch's. What torch gives
beside (LU, pivots) no public function shows, and is left empty. torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Values, as_scalar, constant, count_up, dtype_of, ints, rank, repeat

_INT64, _INT32, _DOUBLE = ir.DataType.INT64, ir.DataType.INT32, ir.DataType.DOUBLE


@dataclass(frozen=True)
class Eliminated:
    """`right` is the solution; the others are properties of the matrices: sign and log of the determinant, first pivot of 0."""

    right: ir.Value
    sign: ir.Value
    log_determinant: ir.Value
    info: ir.Value


def eliminate(matrix: ir.Value, right: ir.Value, of_rank: int, dtype: ir.DataType) -> Eliminated:
    """Solve matrix @ x = right, in float64; both have the same batch axes."""
    wide = _eliminate(op.Cast(matrix, to=_DOUBLE), op.Cast(right, to=_DOUBLE), of_rank, _DOUBLE)
    right, sign, log = (op.Cast(value, to=dtype) for value in (wide.right, wide.sign, wide.log_determinant))
    return Eliminated(right, sign, log, wide.info)


def _eliminate(matrix: ir.Value, right: ir.Value, of_rank: int, dtype: ir.DataType) -> Eliminated:
    row_axis, column_axis = of_rank - 2, of_rank - 1
    size = as_scalar(op.Shape(matrix, start=row_axis, end=row_axis + 1))
    rows = count_up(size)
    batch = op.Shape(matrix, start=0, end=row_axis)
    zero, one = constant(0, dtype), constant(1, dtype)

    def step(k: ir.Value, table: ir.Value, sign: ir.Value, log: ir.Value, info: ir.Value) -> Values:
        is_k = op.Equal(rows, k)
        chosen, swapped = swap_pivot(table, k, rows, of_rank)
        pivot_row = op.Gather(swapped, k, axis=row_axis)
        pivot = op.Gather(pivot_row, op.Reshape(k, ints(1)), axis=row_axis)
        normal = op.Unsqueeze(op.Div(pivot_row, pivot), ints(row_axis))
        factor = op.Unsqueeze(op.Gather(swapped, k, axis=column_axis), ints(column_axis))
        is_row = op.Unsqueeze(is_k, ints(1))
        reduced = op.Where(is_row, normal, op.Sub(swapped, op.Mul(factor, normal)))
        is_done = op.And(op.Equal(pivot, zero), op.Greater(rows, k))
        reduced = op.Where(op.Unsqueeze(is_done, ints(column_axis)), swapped, reduced)
        flip = op.Where(op.Equal(chosen, k), one, constant(-1, dtype))
        scalar_pivot, scalar_flip = op.Squeeze(pivot, ints(row_axis)), op.Squeeze(flip, ints(row_axis))
        is_new = op.And(op.Equal(scalar_pivot, zero), op.Equal(info, constant(0, _INT32)))
        number = op.Cast(op.Add(k, as_scalar(1)), to=_INT32)
        return [
            reduced,
            op.Mul(sign, op.Mul(op.Sign(scalar_pivot), scalar_flip)),
            op.Add(log, op.Log(op.Abs(scalar_pivot))),
            op.Where(is_new, number, info),
        ]

    states = [
        (op.Concat(matrix, right, axis=column_axis), dtype),
        (op.Expand(one, batch), dtype),
        (op.Expand(zero, batch), dtype),
        (op.Expand(constant(0, _INT32), batch), _INT32),
    ]
    table, sign, log, info = repeat(size, states, step)
    result = op.Slice(table, op.Reshape(size, ints(1)), op.Shape(table, start=column_axis), ints(column_axis))
    return Eliminated(result, sign, log, info)


def substitute(triangle: ir.Value, right: ir.Value, of_rank: int, *, upper: bool) -> ir.Value:
    """Solve triangle @ x = right, in float64, column by column as BLAS's trsm: with 0 on the diagonal the same elements are
    infinite or NaN. Only the named triangle is read; both have the same batch axes.

    A round solves one row, and takes it off all rows of `right`. Those that are solved already are not read again: no
    round has to leave them as they are, which would take a choice for each element.
    """
    row_axis, column_axis = of_rank - 2, of_rank - 1
    table = op.Cast(triangle, to=_DOUBLE)
    size = as_scalar(op.Shape(table, start=row_axis, end=row_axis + 1))
    last = op.Sub(size, as_scalar(1))

    def step(k: ir.Value, rest: ir.Value) -> Values:
        place = op.Sub(last, k) if upper else k
        column = op.Gather(table, place, axis=column_axis)
        pivot = op.Gather(column, op.Reshape(place, ints(1)), axis=row_axis)
        solved = op.Div(op.Gather(rest, place, axis=row_axis), pivot)
        taken = op.Mul(op.Unsqueeze(column, ints(column_axis)), op.Unsqueeze(solved, ints(row_axis)))
        return [op.Sub(rest, taken), solved]

    _, rows = repeat(size, [(op.Cast(right, to=_DOUBLE), _DOUBLE)], step, collected=1)
    in_order = op.Gather(rows, op.Sub(last, count_up(size)), axis=0) if upper else rows
    solved = op.Transpose(in_order, perm=[*range(1, row_axis + 1), 0, column_axis])
    return op.Reshape(solved, op.Shape(right), allowzero=1)  # no rounds at all: what is collected has no axes to read


def cholesky(matrix: ir.Value, of_rank: int, dtype: ir.DataType) -> tuple[ir.Value, ir.Value]:
    """The lower factor, from the lower triangle, and the first column at which the matrix is not positive; in float64.

    From that column on, the factor has the elements of the matrix, and on the diagonal the pivot: as LAPACK leaves them.
    """
    factor, info = _cholesky(op.Cast(matrix, to=_DOUBLE), of_rank, _DOUBLE)
    return op.Cast(factor, to=dtype), info


def swap_pivot(table: ir.Value, k: ir.Value, rows: ir.Value, of_rank: int) -> tuple[ir.Value, ir.Value]:
    """The row from k on with the largest entry of column k, and the table in which it has changed places with row k."""
    column = op.Gather(table, k, axis=of_rank - 1)
    candidates = op.Where(op.GreaterOrEqual(rows, k), op.Abs(column), constant(-1, dtype_of(table)))
    chosen = op.ArgMax(candidates, axis=of_rank - 2, keepdims=1)
    order = op.Where(op.Equal(rows, k), chosen, op.Where(op.Equal(rows, chosen), k, rows))
    wide = op.Expand(op.Unsqueeze(order, ints(of_rank - 1)), op.Shape(table))
    return chosen, op.GatherElements(table, wide, axis=of_rank - 2)


def _cholesky(matrix: ir.Value, of_rank: int, dtype: ir.DataType) -> tuple[ir.Value, ir.Value]:
    row_axis, column_axis = of_rank - 2, of_rank - 1
    size = as_scalar(op.Shape(matrix, start=row_axis, end=row_axis + 1))
    rows = count_up(size)
    batch = op.Shape(matrix, start=0, end=row_axis)

    def step(k: ir.Value, table: ir.Value, info: ir.Value) -> Values:
        column = op.Gather(table, k, axis=column_axis)
        pivot = op.Gather(column, op.Reshape(k, ints(1)), axis=row_axis)
        scaled = op.Div(column, op.Sqrt(pivot))
        is_kept = op.GreaterOrEqual(rows, k)
        kept = op.Where(is_kept, scaled, constant(0, dtype))
        outer = op.Mul(op.Unsqueeze(kept, ints(column_axis)), op.Unsqueeze(kept, ints(row_axis)))
        is_bad = op.Not(op.Greater(op.Squeeze(pivot, ints(row_axis)), constant(0, dtype)))
        is_new = op.And(is_bad, op.Equal(info, constant(0, _INT32)))
        number = op.Cast(op.Add(k, as_scalar(1)), to=_INT32)
        info = op.Where(is_new, number, info)
        has_failed = op.Unsqueeze(op.Greater(info, constant(0, _INT32)), ints(row_axis))
        is_pivot = op.And(op.Unsqueeze(is_new, ints(row_axis)), op.Equal(rows, k))
        given = op.Where(is_kept, op.Gather(matrix, k, axis=column_axis), constant(0, dtype))
        left = op.Where(is_pivot, pivot, given)
        return [op.Sub(table, outer), info, op.Where(has_failed, left, kept)]

    states = [(matrix, dtype), (op.Expand(constant(0, _INT32), batch), _INT32)]
    _, info, columns = repeat(size, states, step, collected=1)
    return op.Transpose(columns, perm=[*range(1, of_rank), 0]), info


def translate_inv(matrix: ir.Value, *, check_errors: bool = False) -> tuple[ir.Value, ir.Value]:
    dtype = dtype_of(matrix)
    solved = eliminate(matrix, identities(matrix, dtype), rank(matrix), dtype)
    return solved.right, solved.info


def translate_inv_checked(matrix: ir.Value) -> ir.Value:
    """aten::linalg_inv, kept whole: inside, torch checks `info` by an operator that has no result to translate."""
    return translate_inv(matrix)[0]


def translate_solve_checked(matrix: ir.Value, right: ir.Value, *, left: bool = True) -> ir.Value:
    return translate_solve(matrix, right, left=left)[0]


def translate_cholesky_checked(matrix: ir.Value, upper: bool = False) -> ir.Value:
    return translate_cholesky(matrix, upper=upper)[0]


def translate_slogdet(matrix: ir.Value) -> tuple[ir.Value, ...]:
    dtype = dtype_of(matrix)
    nothing = op.Slice(matrix, ints(0), ints(0), ints(rank(matrix) - 1))
    solved = eliminate(matrix, nothing, rank(matrix), dtype)
    return solved.sign, solved.log_determinant, _empty(dtype), _empty(ir.DataType.INT32)


def translate_solve(
    matrix: ir.Value, right: ir.Value, *, left: bool = True, check_errors: bool = False
) -> tuple[ir.Value, ...]:
    dtype = dtype_of(matrix)
    is_vector = rank(right) == 1 or (
        rank(right) == rank(matrix) - 1 and list(right.shape or ()) == list(matrix.shape or ())[:-1]
    )
    column = op.Unsqueeze(right, ints(rank(right))) if is_vector else right
    of_rank = max(rank(matrix), rank(right) + int(is_vector))
    if not left:
        matrix, column = turn(matrix, rank(matrix)), turn(column, rank(right) + int(is_vector))
    matrix, column = same_batch(matrix, column, of_rank)
    solved = eliminate(matrix, column, of_rank, dtype)
    result = solved.right if left else turn(solved.right, of_rank)
    result = op.Squeeze(result, ints(of_rank - 1)) if is_vector else result
    return result, _empty(dtype), _empty(ir.DataType.INT32), solved.info


def translate_solve_triangular(
    matrix: ir.Value, right: ir.Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> ir.Value:
    """Only the named triangle is read; with `unitriangular`, its diagonal is taken for ones."""
    dtype = dtype_of(matrix)
    of_rank = max(rank(matrix), rank(right))
    triangle = op.Where(_is_diagonal(matrix), constant(1, dtype), matrix) if unitriangular else matrix
    if not left:
        triangle, right_side = turn(triangle, rank(matrix)), turn(right, rank(right))
    else:
        right_side = right
    triangle, right_side = same_batch(triangle, right_side, of_rank)
    # Transposed, an upper triangle is a lower one.
    result = op.Cast(substitute(triangle, right_side, of_rank, upper=upper == left), to=dtype)
    return result if left else turn(result, of_rank)


def translate_triangular_solve(
    right: ir.Value, matrix: ir.Value, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The older name, which gives the matrix back beside the solution, both with the batch of the two."""
    of_rank = max(rank(matrix), rank(right))
    whole, column = same_batch(matrix, right, of_rank)
    for value, like in ((whole, matrix), (column, right)):
        value.type, value.shape = like.type, ir.Shape([None] * of_rank)
    turned = whole
    if transpose:
        turned = turn(whole, of_rank)
        turned.type, turned.shape = whole.type, whole.shape
    solved = translate_solve_triangular(turned, column, upper=upper != transpose, unitriangular=unitriangular)
    return solved, op.Identity(whole)


def translate_cholesky(
    matrix: ir.Value, *, upper: bool = False, check_errors: bool = False
) -> tuple[ir.Value, ir.Value]:
    dtype = dtype_of(matrix)
    factor, info = cholesky(turn(matrix, rank(matrix)) if upper else matrix, rank(matrix), dtype)
    return (turn(factor, rank(matrix)) if upper else factor), info


def turn(matrix: ir.Value, of_rank: int) -> ir.Value:
    return op.Transpose(matrix, perm=[*range(of_rank - 2), of_rank - 1, of_rank - 2])


def _is_diagonal(matrix: ir.Value) -> ir.Value:
    rows = count_up(as_scalar(op.Shape(matrix, start=-1)))
    return op.Equal(op.Unsqueeze(rows, ints(0)), op.Unsqueeze(rows, ints(1)))


def identities(matrix: ir.Value, dtype: ir.DataType) -> ir.Value:
    return op.Expand(op.Cast(_is_diagonal(matrix), to=dtype), op.Shape(matrix))


def same_batch(matrix: ir.Value, right: ir.Value, of_rank: int) -> tuple[ir.Value, ir.Value]:
    """Both with the batch axes of their broadcast: a product of two tables of ones has its shape."""
    if of_rank == 2:
        return matrix, right
    one = constant([[1]], ir.DataType.INT64)
    batches = [op.Concat(op.Shape(value, start=0, end=-2), ints(1, 1), axis=0) for value in (matrix, right)]
    together = op.Shape(op.Mul(*(op.Expand(one, batch) for batch in batches)), start=0, end=-2)
    wide = [op.Expand(value, op.Concat(together, op.Shape(value, start=-2), axis=0)) for value in (matrix, right)]
    return wide[0], wide[1]


def _empty(dtype: ir.DataType) -> ir.Value:
    return op.Expand(constant(0, dtype), ints(0))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "linalg_inv": translate_inv_checked,
    "inverse": translate_inv_checked,
    "linalg_solve": translate_solve_checked,
    "cholesky": translate_cholesky_checked,
    "linalg_cholesky": translate_cholesky_checked,
    "linalg_inv_ex": translate_inv,
    "_linalg_solve_ex": translate_solve,
    "linalg_solve_triangular": translate_solve_triangular,
    "_linalg_slogdet": translate_slogdet,
    "linalg_cholesky_ex": translate_cholesky,
    "triangular_solve": translate_triangular_solve,
}
