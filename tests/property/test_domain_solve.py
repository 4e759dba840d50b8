"""The solver's answers against brute force on small boxes."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.domain import (
    All,
    AnyOf,
    Compare,
    Condition,
    Dim,
    Domain,
    Expr,
    Not,
    Number,
    Op,
    Range,
    Ref,
    Truth,
    Undecided,
    decide,
    evaluate,
    find_contradiction,
    find_point,
    holds,
    is_empty,
    range_of,
    smallest_point,
)

NAMES = ("a", "b", "c")
Sizes = dict[str, int]


def quick(examples: int) -> Callable[..., object]:
    thorough = 10 if os.environ.get("ANYSHAPE_THOROUGH") == "1" else 1
    return settings(max_examples=examples * thorough, deadline=None)


LEAVES: st.SearchStrategy[Expr] = st.one_of(st.sampled_from(NAMES).map(Ref), st.integers(-4, 7).map(Number))
EXPRS: st.SearchStrategy[Expr] = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda symbol, one, two: Op(symbol, (one, two)),
        st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]),
        inner,
        inner,
    ),
    max_leaves=4,
)
COMPARES: st.SearchStrategy[Condition] = st.builds(
    Compare, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), EXPRS, EXPRS
)
CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    COMPARES,
    COMPARES.map(Not),
    st.builds(lambda one, two: AnyOf((one, two)), COMPARES, COMPARES),
    st.builds(lambda one, two: All((one, two)), COMPARES, COMPARES),
)
DIMS = st.builds(
    lambda low, width, multiple: (low, low + width + multiple - 1, multiple),
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from([1, 1, 2, 3]),
)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    dims = tuple(Dim(name, *draw(DIMS)) for name in NAMES)
    return Domain(dims, tuple(draw(st.lists(CONDITIONS, max_size=2))))


def brute_force(domain: Domain, *conditions: Condition) -> list[Sizes]:
    """Every point in the order of its size: the smallest sum first, then the first in the order of the dims."""
    axes = [range((dim.max or 0) + 1) for dim in domain.dims]
    points = (dict(zip(domain.names, point, strict=True)) for point in product(*axes))
    kept = [sizes for sizes in points if all(holds(rule, sizes) for rule in (*domain.conditions(), *conditions))]
    return sorted(kept, key=lambda sizes: (sum(sizes.values()), tuple(sizes.values())))


def values_of(expr: Expr, points: list[Sizes]) -> list[int]:
    has_value = Compare("==", expr, expr)
    return [evaluate(expr, sizes) for sizes in points if holds(has_value, sizes)]


@quick(40)
@given(domains())
def test_a_domain_is_empty_when_no_point_is_in_it(domain: Domain) -> None:
    assert is_empty(domain) is (Truth.NO if brute_force(domain) else Truth.YES)


@quick(40)
@given(domains(), CONDITIONS)
def test_a_point_is_found_where_there_is_one(domain: Domain, condition: Condition) -> None:
    point = find_point(domain, condition)
    points = brute_force(domain, condition)
    assert point in points if points else point is None


@quick(50)
@given(domains(), CONDITIONS)
def test_the_smallest_point_is_the_smallest(domain: Domain, condition: Condition) -> None:
    points = brute_force(domain, condition)
    assert smallest_point(domain, condition) == (points[0] if points else None)


@quick(50)
@given(domains(), CONDITIONS)
def test_a_decision_agrees_with_every_point(domain: Domain, condition: Condition) -> None:
    failing = [sizes for sizes in brute_force(domain) if not holds(condition, sizes)]
    decision = decide(domain, condition)
    assert decision.status == ("refuted" if failing else "proved")
    assert decision.counterexample == (failing[0] if failing else None)


@quick(50)
@given(domains(), EXPRS)
def test_a_range_is_that_of_all_values(domain: Domain, expr: Expr) -> None:
    values = values_of(expr, brute_force(domain))
    assert range_of(domain, expr) == (Range(min(values), max(values)) if values else None)


@quick(40)
@given(domains(), EXPRS)
def test_brute_force_takes_over_when_the_solver_has_no_time(domain: Domain, expr: Expr) -> None:
    points = brute_force(domain)
    values = values_of(expr, points)
    assert smallest_point(domain, steps=0) == (points[0] if points else None)
    assert range_of(domain, expr, steps=0) == (Range(min(values), max(values)) if values else None)


@quick(40)
@given(domains())
def test_a_contradiction_is_one_and_needs_all_of_its_rules(domain: Domain) -> None:
    rules = find_contradiction(domain)
    wide = tuple(Dim(name, 0, 12) for name in NAMES)
    assert bool(rules) is not bool(brute_force(domain))
    if rules:
        assert set(rules) <= set(domain.conditions())
        assert not brute_force(Domain(wide, rules))
        fewer = [tuple(other for other in rules if other != rule) for rule in rules]
        assert all(is_empty(Domain(tuple(Dim(name, 0) for name in NAMES), left)) is not Truth.YES for left in fewer)


@quick(40)
@given(st.integers(-30, 30), st.integers(-9, 9), st.sampled_from(["//", "%"]))
def test_the_solver_divides_as_python_does(left: int, right: int, symbol: str) -> None:
    # `a` and `b` hide the numbers from the solver's constant folding.
    domain = Domain((Dim("a", 30, 30), Dim("b", 9, 9)))
    quotient = Op(symbol, (Ref("a") + (left - 30), Ref("b") + (right - 9)))
    has_value = Compare("==", quotient, quotient)
    if right == 0:
        assert decide(domain, has_value).status == "refuted"
        return
    value = left // right if symbol == "//" else left % right
    assert decide(domain, Compare("==", quotient, Number(value))).proved
    assert decide(domain, Compare("!=", quotient, Number(value))).status == "refuted"


def test_without_time_a_large_domain_stays_unknown() -> None:
    a, b = Ref("a"), Ref("b")
    domain = Domain((Dim("a", 2), Dim("b", 2)), (Compare("==", a * b, Number(1_000_003)),))
    assert is_empty(domain, steps=1) is Truth.UNKNOWN
    assert decide(domain, Compare("<", a, b), steps=1).status == "unknown"
    assert range_of(domain, a, steps=1) == Range(Truth.UNKNOWN, Truth.UNKNOWN)
    with pytest.raises(Undecided, match="AS008"):
        find_point(domain, steps=1)
