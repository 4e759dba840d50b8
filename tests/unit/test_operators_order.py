"""Sorting, prefixes, searching and order statistics, along axes of any length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from operator_exports import Row, compare, export, find_differences, integers, sizes

SHAPES = ((2, 5, 8), (3, 6, 8), (1, 1, 8), (4, 13, 8), (2, 33, 8))
LONG = tuple(shape for shape in SHAPES if shape[1] > 1)
WITH_NONE = (*SHAPES, (2, 0, 8))


def sprinkle(*shape: int) -> torch.Tensor:
    """With NaN here and there."""
    x = torch.randn(*shape)
    return torch.where(x > 1, float("nan"), x)


def extremes(*shape: int) -> torch.Tensor:
    """With NaN and both infinities here and there, in any order."""
    x = sprinkle(*shape)
    return torch.where(x < -1, -float("inf"), torch.where(x.abs() < 0.3, float("inf"), x))


def gathered(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The values at the places: of several NaN any may come first."""
    return x.gather(1, places)


def ordered(*lengths: tuple[int, int]) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return [(torch.randn(count).sort().values, torch.randn(wanted, 3)) for count, wanted in lengths]


def batched(*lengths: tuple[int, int, int]) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return [(torch.randn(batch, n).sort().values, torch.randn(batch, m)) for batch, n, m in lengths]


def step(x: torch.Tensor) -> Any:
    return x.kthvalue(x.shape[1] // 2 + 1, dim=1)


TIES = sizes(*SHAPES, make=integers(3))
COUNTS = ((5, 4), (1, 1), (80, 2), (0, 3), (3, 0))
ROWS = [
    Row("sort-stable", lambda x: x.sort(dim=1, stable=True), TIES),
    Row("sort-stable-descending", lambda x: x.sort(dim=1, stable=True, descending=True), TIES),
    Row("argsort-descending", lambda x: x.argsort(1, descending=True), sizes(*WITH_NONE)),
    Row("sort-of-bool", lambda x: (x > 0).sort(1).values, sizes(*SHAPES)),
    Row("sort-with-nan", lambda x: x.sort(dim=1, stable=True), sizes(*SHAPES, make=sprinkle)),
    Row("sort-with-nan-and-infinity", lambda x: x.sort(dim=1, stable=True), sizes(*SHAPES, make=extremes)),
    Row("sort-down-from-nan", lambda x: x.sort(dim=1, stable=True, descending=True), sizes(*SHAPES, make=extremes)),
    Row("topk-with-nan", lambda x: gathered(x, x.topk(2, dim=1).indices), sizes(*LONG, make=extremes)),
    Row("topk-values-with-nan", lambda x: x.topk(2, dim=1).values, sizes(*LONG, make=extremes)),
    Row("least-with-nan", lambda x: x.topk(2, dim=1, largest=False).values, sizes(*LONG, make=extremes)),
    Row("topk-of-halves", lambda x: x.half().topk(2, dim=1).values, sizes(*LONG, make=extremes)),
    Row("topk-of-a-number", lambda x: x.sum().topk(1), sizes(*SHAPES)),
    Row("argmax-with-nan", lambda x: (x.argmax(1), x.argmin(1, keepdim=True)), sizes(*SHAPES, make=extremes)),
    Row("argmax-of-all", lambda x: (x.argmax(), x.argmin(keepdim=True)), sizes(*SHAPES, make=extremes)),
    Row("aminmax-with-nan", lambda x: torch.aminmax(x, dim=1), sizes(*SHAPES, make=extremes)),
    Row("unique-with-nan", torch.unique, sizes(*WITH_NONE, make=extremes)),
    Row("unique-in-full", lambda x: torch.unique((2 * x).round(), True, True, True), sizes(*WITH_NONE)),
    Row("runs-of-nothing", lambda x: torch.unique_consecutive(x.round()), sizes(*WITH_NONE)),
    Row(
        "search-for-nan",
        lambda x: torch.bucketize(x, torch.tensor([-1.0, 1.0, torch.inf])),
        sizes(*SHAPES, make=extremes),
    ),
    Row("cumsum", lambda x: x.cumsum(1), sizes(*WITH_NONE)),
    Row("cumsum-of-integers", lambda x: x.cumsum(1), TIES),
    Row("cumsum-to-a-dtype", lambda x: x.cumsum(1, dtype=torch.float64), sizes(*WITH_NONE)),
    Row("cumsum-of-many-equal-numbers", lambda x: (0 * x + 0.1).cumsum(1), sizes((2, 7, 2), (1, 50_000, 3))),
    Row("cumprod", lambda x: (1 + 0.1 * x).cumprod(1), sizes(*WITH_NONE)),
    Row("cumprod-of-integers", lambda x: x.cumprod(1), TIES),
    Row("cumprod-of-a-static-axis", lambda x: x.cumprod(2), sizes(*SHAPES), {0: (2,)}),
    Row("cummax", lambda x: x.cummax(1), sizes(*SHAPES)),
    Row("cummax-of-equals", lambda x: x.cummax(1), TIES),
    Row("cummin-with-nan", lambda x: x.cummin(1), sizes(*SHAPES, make=sprinkle)),
    Row("logcumsumexp", lambda x: (30 * x).logcumsumexp(1), sizes(*WITH_NONE)),
    Row("logcumsumexp-of-nothing", lambda x: torch.where(x < 0, -torch.inf, x).logcumsumexp(1), sizes(*SHAPES)),
    Row("searchsorted", lambda s, x: torch.searchsorted(s, x), ordered(*COUNTS)),
    Row("searchsorted-right", lambda s, x: torch.searchsorted(s, x, side="right", out_int32=True), ordered(*COUNTS)),
    Row("searchsorted-by-rows", torch.searchsorted, batched((2, 5, 4), (1, 1, 1), (3, 70, 2), (2, 0, 3))),
    Row("searchsorted-sorter", lambda s, x: torch.searchsorted(-s, x, sorter=(-s).argsort()), ordered(*COUNTS[:3])),
    Row(
        "bucketize-narrower-numbers",
        lambda x: torch.bucketize((x * 9).int(), torch.tensor([-4, 0, 4])),
        sizes(*WITH_NONE),
    ),
    Row(
        "bucketize-wider-boundaries",
        lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.1, 1.0], dtype=torch.float64)),
        sizes(*WITH_NONE),
    ),
    Row("bucketize-whole-boundaries", lambda x: torch.bucketize(x, torch.tensor([-1, 0, 1])), sizes(*WITH_NONE)),
    Row("bucketize-constants", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), sizes(*WITH_NONE)),
    Row("median", lambda x: (x.median(1), x.median()), sizes(*SHAPES)),
    Row("median-with-nan", lambda x: (x.median(1).values, x.nanmedian(1).values), sizes(*SHAPES, make=sprinkle)),
    Row("kthvalue-by-a-size", step, sizes(*SHAPES)),
    Row("mode", lambda x: x.mode(1).values, sizes(*SHAPES, make=integers(4))),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


def test_the_comparison_notices_another_order() -> None:
    ascending, descending = (
        Row("", lambda x, way=way: x.sort(1, descending=way), sizes(*SHAPES)) for way in (False, True)
    )
    assert compare(descending, export(ascending)[0])
