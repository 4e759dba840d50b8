"""aten::linalg_inv_ex, _linalg_solve_ex, linalg_solve_triangular, _linalg_slogdet and linalg_cholesky_ex.

Where torch raises for a singular matrix, the file answers inf or NaN; `info` says the same as torch's. What torch gives
beside (LU, pivots) no public function shows, and is left empty. torch.onnx (to 2.13) has none of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.elimination import cholesky, eliminate, substitute
from anyshape.translate.operators.size_values import as_scalar, constant, count_up, dtype_of, ints, rank


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
    answer = solved.right if left else turn(solved.right, of_rank)
    answer = op.Squeeze(answer, ints(of_rank - 1)) if is_vector else answer
    return answer, _empty(dtype), _empty(ir.DataType.INT32), solved.info


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
    answer = op.Cast(substitute(triangle, right_side, of_rank, upper=upper == left), to=dtype)
    return answer if left else turn(answer, of_rank)


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
