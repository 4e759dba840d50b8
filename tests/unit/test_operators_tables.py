"""Ranges and indices made from sizes, scattered writes, counts, contractions, reductions and matrices."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, find_differences, integers, sizes

from anyshape.translate.operators.products import write_out

pytestmark = [
    pytest.mark.filterwarnings("ignore:(var|std).*degrees of freedom is <= 0"),  # eager's own, at size 1
    pytest.mark.filterwarnings("ignore:index_reduce.. is in beta"),
]

SHAPES = ((2, 5, 8), (3, 6, 8), (1, 1, 8), (4, 13, 8))
Inputs = list[tuple[torch.Tensor, ...]]


def edges(make: Any = torch.randn) -> Inputs:
    """Rows, an index of other rows, and what goes there; also nothing at all."""
    torch.manual_seed(0)
    counts = ((5, 8), (1, 3), (7, 2), (4, 0))
    return [(make(n, 4), torch.randint(0, n, (k, 4)), make(k, 4)) for n, k in counts]


def columns() -> Inputs:
    torch.manual_seed(0)
    counts = ((5, 8), (1, 3), (7, 2), (4, 0))
    return [(torch.randn(n, 4, 3), torch.randint(0, 4, (k,)), torch.randn(n, k, 3)) for n, k in counts]


def matrices(*batches: tuple[int, int]) -> Inputs:
    torch.manual_seed(0)
    return [(torch.randn(b, n, n) + 3 * torch.eye(n), torch.randn(b, n, 2)) for b, n in batches]


def alone(*batches: tuple[int, int]) -> Inputs:
    return [(matrix,) for matrix, _ in matrices(*batches)]


def cholesky(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.cholesky(x @ x.mT + torch.eye(x.shape[1]))


def sprinkle(*shape: int) -> torch.Tensor:
    """With NaN here and there."""
    x = torch.randn(*shape)
    return torch.where(x > 1.5, float("nan"), x)


def by_a_size(x: torch.Tensor) -> Any:
    size = x.shape[0]
    return x * (size / 3), x + size, size - x, x % size, x.abs() ** (1 / size), x.long() % size, x.long() * size


def likely(x: torch.Tensor) -> Any:
    of_row = x.abs().sum(1)
    kept = F.gaussian_nll_loss(x, x.sin(), x.exp(), full=True, reduction="none")
    return kept, F.gaussian_nll_loss(x, x.sin(), of_row), F.gaussian_nll_loss(x, x, of_row[:, None], reduction="sum")


def halves(x: torch.Tensor) -> Any:
    half, toward = torch.div(x.shape[1], 2, rounding_mode="floor"), torch.div(1 - x.shape[1], 2, rounding_mode="trunc")
    return x.view(x.shape[0], half, 2), x * toward if half > 0 else x


def counted(x: torch.Tensor) -> Any:
    size, double = x.shape[0], torch.float64
    wide = torch.arange(0, size, 0.7), torch.arange(size, 0, -0.3), torch.arange(0.1, size, 0.1, dtype=double)
    by_size = torch.arange(0, 1, 1 / size), torch.arange(0, size * 0.3, 0.1, dtype=double), torch.arange(size / 3)
    return *wide, *by_size, torch.arange(size, dtype=double), torch.arange(1, 2 * size, 2, dtype=torch.float16)


def smoothed(x: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, x.argmin(1), label_smoothing=0.2)


def losses_of_shares(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    shares, weight = x.softmax(1), x[0].exp()
    return (
        F.cross_entropy(x, shares, reduction="none"),
        F.cross_entropy(x, shares, weight, reduction="sum"),
        F.cross_entropy(x, shares, weight, label_smoothing=0.2),
        F.cross_entropy(x[0], shares[0]),
    )


def normalized(x: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(x, None, None, training=True)


def scatter(reduce: str, include_self: bool) -> Row:
    def function(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(0, index, source, reduce, include_self=include_self)

    return Row(f"scatter-{reduce}-{include_self}", function, edges())


def indices(x: torch.Tensor) -> Any:
    rows, columns = x.shape[1], x.shape[2]
    lower, upper = torch.tril_indices, torch.triu_indices
    return (
        lower(rows, rows),
        upper(rows, rows, 1),
        lower(rows, columns, 2),
        lower(columns, rows, -1),
        upper(rows, columns),
    )


def chosen(x: torch.Tensor) -> Any:
    row = x[0, :, 0]
    return (
        torch.combinations(row),
        torch.combinations(row, with_replacement=True),
        torch.combinations(row, 3),
        torch.combinations(input=row, r=1),
    )


def spans(x: torch.Tensor) -> Any:
    size = x.shape[1]
    return (
        torch.linspace(0, 1, size),
        torch.linspace(-1, size, x.shape[0] + 1, dtype=torch.float64),
        torch.linspace(0, size, size, dtype=torch.int64),
        torch.logspace(0, 1, size),
        torch.fft.fftfreq(size),
        torch.fft.rfftfreq(size, 0.5),
    )


def windows(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    size = x.shape[1]
    return (
        torch.hann_window(size),
        torch.hann_window(size, periodic=False, dtype=torch.float64),
        torch.hamming_window(size + 1, True, 0.6, 0.4),
        torch.blackman_window(size, False),
        torch.bartlett_window(size),
        torch.kaiser_window(window_length=size, beta=5.0, periodic=False),
        torch.hann_window(7),
    )


BATCHES = ((2, 4), (1, 1), (3, 6))
ROWS = [
    Row("windows", windows, sizes(*SHAPES)),
    Row("indices", indices, sizes(*SHAPES)),
    Row("chosen", chosen, sizes(*SHAPES)),
    Row("spans", spans, sizes(*SHAPES)),
    Row("take-along", lambda x: torch.take_along_dim(x, x[:, :, :1].argsort(1), 1), sizes(*SHAPES)),
    Row("vander", lambda x: (torch.vander(x[0, :, 0], 3), torch.vander(x[0, :, 0], 1)), sizes(*SHAPES), {0: (2,)}),
    Row("kron", lambda x: torch.kron(x[0], x[0, :, :2]), sizes(*SHAPES), {0: (2,)}),
    Row("diagonal", lambda x: (x[0].clone().fill_diagonal_(2), (x[0] @ x[0].T).fill_diagonal_(0.5)), sizes(*SHAPES)),
    *(scatter(reduce, own) for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
    Row(
        "scatter-mean-of-integers",
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean"),
        edges(lambda *s: torch.randint(-9, 9, s)),
    ),
    Row("scatter-from-a-larger-source", lambda x, i, s: x.scatter_add(0, i[:, :3], s), edges()),
    Row("scatter-part-of-a-source", lambda x, i, s: x.scatter(0, i[:1, :3], s), edges()[:3]),
    Row("index-reduce", lambda x, i, s: x.index_reduce(0, i[:, 0], s, "amax"), edges()),
    Row("index-put-adds-columns", lambda x, i, s: torch.ops.aten.index_put(x, [None, i], s, True), columns()),
    Row("bincount", lambda x: torch.bincount(x, x * 0.5, minlength=5), sizes((9,), (1,), (30,), make=integers(9))),
    Row("histc-of-its-own-range", lambda x: torch.histc(x, 8), sizes((9,), (1,), (30,))),
    Row(
        "runs",
        lambda x: torch.unique_consecutive(x, True, True, dim=0),
        sizes((6, 2), (1, 2), (9, 2), make=integers(2)),
    ),
    Row("einsum-without-ellipsis", lambda x: torch.einsum("b...j->b", x), sizes(*SHAPES)),
    Row("extremes-of-bool", lambda x: ((x > 0).amax(1), (x > 0).amin((0, 2)), (x > 0).max(1)), sizes(*SHAPES)),
    Row("extremes-with-nan", lambda x: (x.amax(1), x.min(1), x.max(), x.amin((0, 2))), sizes(*SHAPES, make=sprinkle)),
    Row(
        "variance-of-equals", lambda x: (x * 0 + 0.1).std(1), sizes((2, 77, 8), (1, 13, 8), (3, 300, 8)), tolerance=1e-7
    ),
    Row("put", lambda x: x.put(torch.tensor([0, 5, 5]), torch.ones(3), accumulate=True), sizes(*SHAPES)),
    Row("common-divisors", lambda x: (torch.gcd(x, x.flip(1)), torch.lcm(x, x + 1)), sizes(*SHAPES, make=integers(99))),
    Row("powers-of-two", lambda x: torch.frexp(torch.where(x > 1, 4.0, x * 1e3)), sizes(*SHAPES)),
    Row("numbers-of-elements", lambda x: x * x.numel(), sizes(*SHAPES)),
    Row("copy", lambda x: torch.linalg.matrix_power(x, 0), sizes((2, 3, 3), (1, 1, 1), (4, 5, 5))),
    Row("smoothed-loss", smoothed, sizes((5, 4), (1, 3), (9, 7))),
    Row("loss-of-shares", lambda x: F.cross_entropy(x, x.softmax(1)), sizes((5, 4), (1, 3), (9, 7))),
    Row("losses-of-shares", losses_of_shares, sizes((5, 4), (1, 3), (9, 7))),
    Row("loss-of-shares-of-pixels", lambda x: F.cross_entropy(x, x.softmax(1)), sizes((2, 4, 3), (1, 3, 5), (3, 7, 1))),
    Row("normalized-in-training", normalized, sizes((5, 4, 3), (2, 3, 1), (9, 7, 2))),
    Row("covariance", lambda x: (torch.cov(x), x.cov(correction=0)), sizes((3, 5), (2, 9), (4, 3))),
    Row("covariance-of-one", lambda x: (torch.cov(x), torch.corrcoef(x)), sizes((5,), (9,), (2,))),
    Row("correlation", lambda x: torch.corrcoef(x), sizes((3, 5), (2, 9), (4, 3))),
    Row("one-hot", lambda x: F.one_hot(x, 9), sizes((3, 5), (2, 9), (4, 0), make=integers(9))),
    Row("one-hot-of-a-size", lambda x: F.one_hot(x % x.shape[0], x.shape[0]), sizes((3, 5), (2, 9), make=integers(9))),
    Row("one-hot-of-the-greatest", F.one_hot, sizes((3, 5), (2, 9), (1, 1), make=integers(9))),
    Row("loss-of-variances", likely, sizes((3, 5), (2, 9), (1, 1))),
    Row("steps-of-a-fraction", counted, sizes((9,), (7,), (1,), (21,), (30,), (90,)), tolerance=1e-6),
    Row("sizes-by-a-function", halves, sizes((3, 6), (2, 4), (1, 10))),
    Row("by-a-size", by_a_size, sizes((3, 5), (2, 9), (6, 1))),
    Row("other-names", lambda x: (torch.divide(x, x.long() + 9), x.multiply(x > 0), x.subtract(3)), sizes(*SHAPES)),
    Row("variance-of-one", lambda x: (x.var(1, correction=2), x.std(1), x.var()), sizes(*SHAPES)),
    Row("inverse", torch.linalg.inv, alone(*BATCHES), tolerance=1e-3),
    Row("solve", torch.linalg.solve, matrices(*BATCHES), tolerance=1e-3),
    Row("triangular", lambda x, y: torch.linalg.solve_triangular(x, y, upper=True), matrices(*BATCHES), tolerance=1e-3),
    Row("cholesky", cholesky, alone(*BATCHES), tolerance=1e-3),
    Row("slogdet", torch.linalg.slogdet, alone(*BATCHES), tolerance=1e-3),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


def test_a_row_that_is_masked_all_over_attends_to_nothing() -> None:
    inputs = [(torch.randn(2, 2, size, 4), torch.rand(size, size) > 0.9) for size in (5, 1, 7)]
    row = Row("", lambda q, mask: F.scaled_dot_product_attention(q, q, q, attn_mask=mask), inputs)
    assert find_differences(row) == []


@pytest.mark.parametrize(
    ("equation", "ranks", "written"),
    [
        ("b...j->b", [4], "bacj->b"),
        ("...i,i...->", [3, 2], "abi,ib->"),
        ("...ij->...ji", [4], "...ij->...ji"),
        ("ij,jk->ik", [2, 2], "ij,jk->ik"),
    ],
)
def test_an_ellipsis_that_is_summed_is_written_out(equation: str, ranks: list[int], written: str) -> None:
    assert write_out(equation, ranks) == written


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("axes", [(), (3,), (2, 2, 2)], ids=["two", "three", "five"])
def test_attention_of_any_number_of_axes(axes: tuple[int, ...], is_causal: bool) -> None:
    inputs = [(torch.randn(*axes, size, 4),) for size in (5, 1, 7)]
    attend = lambda q: F.scaled_dot_product_attention(q, q * 0.5, q + 1, is_causal=is_causal)  # noqa: E731
    assert find_differences(Row("", attend, inputs)) == []
