"""Intervals of integer expressions contain every value, and know the ends of products and of memory."""

from __future__ import annotations

from itertools import product

import pytest

from anyshape.domain import Dim, Domain, evaluate, parse_condition, parse_expr
from anyshape.domain.intervals import MOST_ELEMENTS, Limits, interval_of, largest_that, limits_of

_BOX = Domain((Dim("a", 1, 9), Dim("b", 0, 6)))


@pytest.mark.parametrize(
    "text",
    [
        "a*b - 3*a",
        "(a - 5)*(b - 2)",
        "(a - 5)//3",
        "(a*b)//(b + 1)",
        "(7 - a) % 4",
        "a % (0 - 3)",
        "(a - 4) % (b - 3)",
        "(b - 3)//(a - 4)",
        "min(a, b)*max(a - b, 2)",
        "a*a*a - a*a*b",
        "a//4*(b//2)",
        "(2*a + 3)//4*(a//2)*b",
        "(9 - a)//2*((b + 5)//3)",
        "b*max(0, a - min(5, a))",
        "min(a, 4)*max(b, 2*b - 3)",
        "max(0, 3*a - b - 2)*min(2*b, b + 1)",
    ],
)
def test_an_interval_contains_every_value(text: str) -> None:
    expr, limits = parse_expr(text), limits_of(_BOX)
    low, high = interval_of(expr, limits)
    for a, b in product(range(1, 10), range(7)):
        try:
            value = evaluate(expr, {"a": a, "b": b})
        except Exception:
            continue  # it divides by zero: no value
        assert low <= value <= high


def test_terms_that_cancel_leave_a_narrow_interval() -> None:
    assert interval_of(parse_expr("a*b - a*b + a"), limits_of(_BOX)) == (1, 9)


def test_an_open_dim_ends_where_memory_does() -> None:
    domain = Domain((Dim("n", 1),))
    assert interval_of(parse_expr("n"), limits_of(domain)) == (1, MOST_ELEMENTS)
    assert limits_of(domain, [parse_expr("n*n")]).ends["n"] == (1, 2**24)
    assert interval_of(parse_expr("n*n"), limits_of(domain, [parse_expr("n*n")])) == (1, MOST_ELEMENTS)


@pytest.mark.parametrize("part", ["max(0, a - min(1500, a))", "min(1500, a)", "max(0, a - 3)", "max(a//2, a - 7)"])
def test_a_part_of_a_dim_is_at_most_the_dim_in_a_product(part: str) -> None:
    limits = limits_of(Domain((Dim("a", 1), Dim("b", 1))), [parse_expr("a*b")])
    assert interval_of(parse_expr(f"b*{part}"), limits)[1] <= MOST_ELEMENTS


def test_a_small_end_counts_beside_a_product_that_ends() -> None:
    limits = limits_of(Domain((Dim("a", 1), Dim("b", 1), Dim("c", 1))), [parse_expr("a*b")])
    assert interval_of(parse_expr("min(1500, c)*(a//2)*(b//2)"), limits)[1] == 1500 * MOST_ELEMENTS // 4


def test_more_than_a_dim_is_no_part_of_it() -> None:
    limits = limits_of(Domain((Dim("a", 1), Dim("b", 1))), [parse_expr("a*b")])
    assert interval_of(parse_expr("b*max(0, 3*a - min(5, a))"), limits)[1] == 3 * MOST_ELEMENTS
    assert interval_of(parse_expr("b*max(a, 7)"), limits)[1] > MOST_ELEMENTS


def test_the_product_of_a_tensors_sizes_ends_where_memory_does() -> None:
    domain = Domain((Dim("a", 1), Dim("b", 1)))
    limits = limits_of(domain, [parse_expr("4*a*b")])
    assert interval_of(parse_expr("a*b*1000"), limits) == (1000, 1000 * MOST_ELEMENTS // 4)
    assert interval_of(parse_expr("a*b*a"), limits)[1] > 2**63


def test_the_end_of_a_product_ends_the_product_of_parts() -> None:
    limits = limits_of(Domain((Dim("h", 1), Dim("w", 1))), [parse_expr("h*w")])
    assert interval_of(parse_expr("h//4*(w//4)"), limits) == (0, MOST_ELEMENTS // 16)
    assert interval_of(parse_expr("(h + 1)//2*w"), limits) == (1, MOST_ELEMENTS)


def test_the_end_of_a_product_ends_the_product_of_some_of_its_dims() -> None:
    limits = limits_of(Domain((Dim("b", 1), Dim("c", 0), Dim("h", 4), Dim("w", 4))), [parse_expr("b*3*h*w")])
    assert interval_of(parse_expr("h//4*(w//4)"), limits) == (1, MOST_ELEMENTS // 48)
    twice = Limits({"b": (2, 50), "c": (0, 50), "h": (1, 50)})
    assert interval_of(parse_expr("h"), twice) == (1, 50)
    assert interval_of(parse_expr("h*h"), twice.with_product(("b", "h", "h"), 60)) == (1, 30)
    assert interval_of(parse_expr("h*h"), twice.with_product(("c", "h", "h"), 60)) == (1, 2500)


def test_relations_give_ends() -> None:
    domain = Domain((Dim("a", 1), Dim("b", 1)), (parse_condition("a*b <= 100"), parse_condition("a <= 20 - b")))
    limits = limits_of(domain)
    assert limits.ends["a"] == (1, 19)
    assert interval_of(parse_expr("a*b"), limits) == (1, 100)


def test_the_largest_that_fits_is_found_by_halving() -> None:
    assert largest_that(lambda number: number**7 < 2**63, 1, 2**48) == 511
    assert largest_that(lambda number: number < 0, 1, 9) is None


def test_limits_can_be_tightened() -> None:
    limits = Limits({"a": (1, 50), "b": (1, 50)})
    assert interval_of(parse_expr("a*b"), limits.with_product(("b", "a"), 60)) == (1, 60)
    assert interval_of(parse_expr("a*b"), limits.with_end(["a"], 3)) == (1, 150)
