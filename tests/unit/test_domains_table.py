"""The table of modules with their true domains: its truths hold in eager, and the comparison can fail."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).parents[2] / "benchmarks" / "domains"
SLOW = {"conditional"}  # torch.cond compiles at each new size
POINTS = 16


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The table's own modules, by name."""
    monkeypatch.syspath_prepend(str(TABLE))
    return importlib.import_module


def test_the_table_has_at_least_80_rows_with_names_of_their_own(table: Any) -> None:
    names = [row.name for row in table("modules").ROWS]
    assert len(names) == len(set(names)) >= 80


def test_truths_agree_with_eager_at_a_few_points(table: Any) -> None:
    find = table("truths").find_disagreements
    rows = [row for row in table("modules").ROWS if row.name not in SLOW]
    assert {row.name: differ for row in rows if (differ := find(row, POINTS))} == {}


@pytest.mark.parametrize("name", ["u-net-depth-1", "view-11", "added-vectors", "decoder-step", "at-most-in-all"])
@pytest.mark.parametrize("truth", ["True", "False"])
def test_an_untrue_truth_is_found(table: Any, name: str, truth: str) -> None:
    row = next(row for row in table("modules").ROWS if row.name == name)
    assert table("truths").find_disagreements(dataclasses.replace(row, truth=truth), POINTS * 2)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("five-poolings", "h % 4 == 0 and w % 2 == 0"),
        ("five-poolings", "h % 32 == 0 and w % 64 == 0"),
        ("view-64", "n % 32 == 0"),
        ("view-20", "n % 4 == 0 and n >= 20"),
        ("group-normed", "c % 4 == 0"),
        ("added-matrices", "a == c and b == d"),
        ("decoder-step", "past + seq <= 47"),
        ("decoder-step", "past <= 24 and seq <= 24"),
    ],
)
def test_a_rule_that_is_not_the_true_one_differs_at_a_point(table: Any, name: str, rule: str) -> None:
    row = next(row for row in table("modules").ROWS if row.name == name)
    wrong = dataclasses.replace(row, truth=rule)
    assert any(row.is_true(sizes) != wrong.is_true(sizes) for sizes in table("judged_exports").points_of(row, 300))


def test_half_of_the_points_are_inside_and_the_rest_lies_at_the_boundary(table: Any) -> None:
    row = next(row for row in table("modules").ROWS if row.name == "five-poolings")
    points = table("points").choose_points(row, 200, lambda dim: 200)
    inside = [sizes for sizes in points if row.is_true(sizes)]
    outside = [sizes for sizes in points if not row.is_true(sizes)]
    assert len(points) == 200
    assert len(inside) >= 100
    assert outside
    assert all(min(size % 32, 32 - size % 32) <= 2 for sizes in outside for dim, size in sizes.items() if dim in "hw")
