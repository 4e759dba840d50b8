"""Matrices taken apart (LU, QR, Cholesky), their exponential, reads along diagonals, and writes along diagonals and strides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from operator_exports import Row, compare, export, find_differences, sizes

SHAPES = ((2, 5, 4), (3, 4, 6), (1, 1, 1), (2, 3, 3))
SQUARES = ((2, 4, 4), (1, 1, 1), (3, 7, 7))


def definite(x: torch.Tensor) -> torch.Tensor:
    """Positive definite, whatever x."""
    return x @ x.mT + torch.eye(x.shape[-1])


def squares(*shapes: tuple[int, ...]) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return [(torch.randn(*shape) + 3 * torch.eye(shape[-1]), torch.randn(*shape[:-1], 2)) for shape in shapes]


def lu_solve(x: torch.Tensor, right: torch.Tensor) -> Any:
    table, pivots = torch.linalg.lu_factor(x)
    turned = torch.linalg.lu_solve(table, pivots, right.mT, left=False)
    return (
        torch.linalg.lu_solve(table, pivots, right),
        torch.linalg.lu_solve(table, pivots, right, adjoint=True),
        turned,
    )


def reflected(x: torch.Tensor) -> Any:
    factors = x[:, 0, :3]
    product = torch.linalg.householder_product(x[:, :, :3], factors)
    return product, torch.ormqr(x[:, :, :3], factors, x), torch.ormqr(x[:, :, :3], factors, x, True, True)


def singular(*shapes: tuple[int, ...]) -> list[tuple[torch.Tensor, ...]]:
    """Matrices with zeros of both signs on the diagonal and elsewhere, and in what is solved for."""
    torch.manual_seed(0)
    few = torch.tensor([0.0, -0.0, 1.0, -2.0, 0.5, 3.0])
    return [(few[torch.randint(0, 6, shape)], few[torch.randint(0, 6, (*shape[:-1], 2))]) for shape in shapes]


def beside_infinities(x: torch.Tensor) -> torch.Tensor:
    """Infinite above the diagonal, NaN below."""
    above = torch.ones_like(x, dtype=torch.bool).triu(1)
    below = torch.ones_like(x, dtype=torch.bool).tril(-1)
    return x.masked_fill(above, float("-inf")).masked_fill(below, float("nan"))


def diagonals(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Also where the offset is beyond the edge at some of the sizes, or at all of them."""
    kinds = (x, x > 0, (x * 9).long(), x.double())
    turned = (x.diagonal(1, 1, 0), x.diagonal(-1, -1, -2))
    return (
        *(each.diagonal(offset) for each in kinds for offset in (0, 2, -2)),
        *turned,
        x.diagonal(70),
        x.diagonal(-70),
    )


def diagonals_of_more(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (x.diagonal(), x.diagonal(1, 2, 1), x.diagonal(-2, 0, -1), (x > 0).diagonal(3, -2, -1))


def triangles(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    solve = torch.linalg.solve_triangular
    return (
        solve(x, y, upper=True),
        solve(x, y, upper=False),
        solve(x, y.mT, upper=True, left=False),
        solve(x, y.mT, upper=False, left=False),
        solve(x, y, upper=False, unitriangular=True),
        torch.triangular_solve(y, x, transpose=True)[0],
    )


def singular_lu(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    pivots = torch.arange(2, x.shape[-1] + 2, dtype=torch.int32).clamp(max=x.shape[-1]).expand(x.shape[:-1])
    return torch.linalg.lu_solve(x, pivots, y), torch.linalg.lu_solve(x, pivots, y, adjoint=True)


PAIRS = squares(*SQUARES)
SINGULAR = singular((3, 4, 4), (1, 1, 1), (20, 5, 5))
ALONE = [(matrix,) for matrix, _ in PAIRS]
ROWS = [
    Row("lu", lambda x: tuple(torch.linalg.lu(x)), sizes(*SHAPES)),
    Row("lu-factor", lambda x: tuple(torch.linalg.lu_factor_ex(x)), sizes(*SHAPES)),
    Row("lu-unpack", lambda x: torch.lu_unpack(*torch.linalg.lu_factor(x)), sizes(*SHAPES)),
    Row("lu-solve", lu_solve, PAIRS, {1: (2,)}, tolerance=1e-3),
    Row("qr", lambda x: tuple(torch.linalg.qr(x)), sizes(*SHAPES)),
    Row("qr-complete", lambda x: tuple(torch.linalg.qr(x, "complete")), sizes(*SHAPES)),
    Row("qr-of-zeros", lambda x: tuple(torch.linalg.qr(x * 0)), sizes(*SHAPES)),
    Row("reflections", reflected, sizes((2, 5, 4), (1, 4, 4), (3, 9, 4)), {0: (2,)}, tolerance=1e-3),
    Row(
        "cholesky-inverse", lambda x: torch.cholesky_inverse(torch.linalg.cholesky(definite(x))), ALONE, tolerance=1e-3
    ),
    Row(
        "cholesky-solve",
        lambda x, right: torch.cholesky_solve(right, torch.linalg.cholesky(definite(x), upper=True), upper=True),
        PAIRS,
        {1: (2,)},
        tolerance=1e-3,
    ),
    Row("triangular", lambda x, y: torch.triangular_solve(y, x, transpose=True)[0], PAIRS, {1: (2,)}, tolerance=1e-3),
    Row("triangles-with-zeros", triangles, SINGULAR, {1: (2,)}),
    Row("lu-solve-with-zeros", singular_lu, SINGULAR, {1: (2,)}),
    Row("cholesky-solve-with-zeros", lambda x, y: torch.cholesky_solve(y, x), SINGULAR, {1: (2,)}),
    Row("cholesky-of-no-positive-matrix", lambda x, y: tuple(torch.linalg.cholesky_ex(x @ x.mT - 0.5)), SINGULAR),
    Row("determinant-of-a-singular-matrix", lambda x, y: tuple(torch.linalg.slogdet(x)), SINGULAR),
    Row("determinant-of-zeros", lambda x, y: tuple(torch.linalg.slogdet(x * 0)), SINGULAR),
    Row("cholesky-of-zeros", lambda x, y: tuple(torch.linalg.cholesky_ex(x * 0)), SINGULAR),
    Row("exponential", torch.linalg.matrix_exp, sizes(*SQUARES), tolerance=1e-3),
    Row("exponential-of-zeros", lambda x: torch.linalg.matrix_exp(x * 0), sizes(*SQUARES)),
    Row("log-determinant", lambda x: torch.logdet(definite(x) * 1e-12), ALONE, tolerance=1e-3),
    Row("diagonal", lambda x: x.diagonal_scatter(x.diagonal(0, 1, 2) * 0 + 7, 0, 1, 2), sizes(*SHAPES)),
    Row(
        "diagonal-above", lambda x: x.diagonal_scatter(x.diagonal(1, 2, 1).exp(), 1, 2, 1), sizes((2, 5, 4), (3, 4, 6))
    ),
    Row(
        "diagonal-below",
        lambda x: x.diagonal_scatter(x.diagonal(-2, 1, 0).exp(), -2, 1, 0),
        sizes((2, 5, 4), (3, 6, 4)),
    ),
    Row("diagonals-of-two-axes", diagonals, sizes((5, 4), (3, 6), (1, 1), (2, 9), (9, 2))),
    Row("diagonals-of-more-axes", diagonals_of_more, sizes((2, 5, 4), (3, 4, 6), (1, 1, 1), (2, 2, 9))),
    Row("trace-of-integers", lambda x: (x * 9).int().trace(), sizes((5, 4), (3, 6), (1, 1))),
    Row("strides", lambda x: x.as_strided_scatter(torch.ones(2, 2), (2, 2), (1, 3), 1), sizes((5, 4), (3, 6), (9, 1))),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


def test_what_is_beside_the_diagonal_has_no_effect() -> None:
    def read(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.diagonal(), x.diagonal(0, 1, 0), x.trace()

    torch.manual_seed(0)
    matrices = [(beside_infinities(torch.randn(shape)),) for shape in ((5, 4), (3, 6), (4, 4), (1, 1))]
    assert all(bool(value.isfinite().all()) for (x,) in matrices for value in read(x))
    assert find_differences(Row("", read, matrices)) == []


def test_the_comparison_notices_another_sign() -> None:
    row, other = (Row("", lambda x, sign=sign: sign * torch.linalg.qr(x)[0], sizes(*SHAPES)) for sign in (1, -1))
    assert compare(other, export(row)[0])
