"""Expressions, conditions and declared domains against evaluation at random sizes."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.domain import (
    FALSE,
    TRUE,
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
    Ref,
    Undefined,
    declare_domain,
    dims_of,
    evaluate,
    find_bound,
    format_condition,
    format_domain,
    format_expr,
    holds,
    negate,
    parse_condition,
    parse_expr,
    simplify,
    substitute,
)
from anyshape.findings import DeclarationError

NAMES = ("a", "b", "seq")
SIZES = st.fixed_dictionaries({name: st.integers(-6, 9) for name in NAMES})
LEAVES: st.SearchStrategy[Expr] = st.one_of(st.integers(-5, 8).map(Number), st.sampled_from(NAMES).map(Ref))


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    infix = st.builds(
        lambda symbol, one, two: Op(symbol, (one, two)), st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner
    )
    by_number = st.builds(
        lambda symbol, one, two: Op(symbol, (one, Number(two))),
        st.sampled_from(("//", "%")),
        inner,
        st.integers(-4, 6).filter(bool),
    )
    call = st.builds(
        lambda symbol, args: Op(symbol, tuple(args)),
        st.sampled_from(("min", "max")),
        st.lists(inner, min_size=2, max_size=3),
    )
    return st.one_of(infix, by_number, call)


EXPRS = st.recursive(LEAVES, grow, max_leaves=10)
COMPARES = st.builds(Compare, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), EXPRS, EXPRS)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(COMPARES, st.sampled_from((TRUE, FALSE))),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: All(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
    ),
    max_leaves=6,
)


def quick(examples: int) -> Callable[..., object]:
    thorough = 10 if os.environ.get("ANYSHAPE_THOROUGH") == "1" else 1
    return settings(max_examples=examples * thorough, deadline=None)


def value_of(expr: Expr, sizes: dict[str, int]) -> int | None:
    try:
        return evaluate(expr, sizes)
    except Undefined:
        return None


@quick(150)
@given(EXPRS)
def test_parse_is_the_inverse_of_format_for_expressions(expr: Expr) -> None:
    assert parse_expr(format_expr(expr)) == expr


@quick(150)
@given(EXPRS, SIZES)
def test_the_text_of_an_expression_means_to_python_what_it_means_to_us(expr: Expr, sizes: dict[str, int]) -> None:
    try:
        expected = eval(format_expr(expr), {"min": min, "max": max}, dict(sizes))
    except ZeroDivisionError:
        expected = None
    assert value_of(expr, sizes) == expected


@quick(250)
@given(EXPRS, st.lists(SIZES, min_size=3, max_size=6))
def test_simplify_keeps_every_value(expr: Expr, points: list[dict[str, int]]) -> None:
    simple = simplify(expr)
    for sizes in points:
        value = value_of(expr, sizes)
        if value is not None:
            assert value_of(simple, sizes) == value


SMALL = st.integers(-9, 12)


@quick(200)
@given(st.tuples(SMALL, SMALL, SMALL), SMALL.filter(bool), st.sampled_from(("//", "%")), SIZES)
def test_simplify_keeps_the_value_of_a_divided_sum(
    factors: tuple[int, int, int], divisor: int, symbol: str, sizes: dict[str, int]
) -> None:
    expr = Op(symbol, (factors[0] * Ref("a") + factors[1] * (Ref("b") % 6) + factors[2], Number(divisor)))
    assert evaluate(simplify(expr), sizes) == evaluate(expr, sizes)


@quick(150)
@given(EXPRS)
def test_simplify_has_nothing_to_do_twice(expr: Expr) -> None:
    simple = simplify(expr)
    assert simplify(simple) == simple
    assert set(dims_of(simple)) <= set(dims_of(expr))


@quick(100)
@given(st.permutations([Ref("a"), Ref("b"), Number(3), Ref("a") * Ref("b"), Ref("seq") // 2]))
def test_simplify_does_not_mind_the_order_of_a_sum(terms: list[Expr]) -> None:
    total: Expr = Number(0)
    for term in terms:
        total = total + term
    assert format_expr(simplify(total)) == "a*b + a + b + seq//2 + 3"


@quick(100)
@given(EXPRS, EXPRS, SIZES)
def test_substituting_is_evaluating_with_the_value(expr: Expr, replacement: Expr, sizes: dict[str, int]) -> None:
    inner = value_of(replacement, sizes)
    if inner is not None:
        expected = value_of(expr, {**sizes, "a": inner})
        assert value_of(substitute(expr, {"a": replacement}), sizes) == expected


@quick(150)
@given(CONDITIONS)
def test_parse_is_the_inverse_of_format_for_conditions(condition: Condition) -> None:
    assert parse_condition(format_condition(condition)) == condition


@quick(150)
@given(CONDITIONS, SIZES)
def test_negate_is_the_exact_opposite(condition: Condition, sizes: dict[str, int]) -> None:
    assert holds(negate(condition), sizes) is not holds(condition, sizes)


@quick(150)
@given(CONDITIONS, SIZES, EXPRS)
def test_substitute_reaches_into_conditions(condition: Condition, sizes: dict[str, int], other: Expr) -> None:
    changed = substitute(condition, {"a": Number(4)})
    assert "a" not in dims_of(changed)
    assert holds(changed, sizes) is holds(condition, {**sizes, "a": 4})


@quick(150)
@given(COMPARES, st.integers(0, 40))
def test_a_bound_says_what_its_condition_says(compare: Compare, size: int) -> None:
    bound = find_bound(compare)
    if bound is not None:
        in_range = (bound.min is None or size >= bound.min) and (bound.max is None or size <= bound.max)
        kept = in_range and size % (bound.multiple or 1) == 0
        assert kept is holds(compare, {bound.name: size})


LINES = st.one_of(
    st.builds("{} <= {}".format, st.sampled_from(NAMES), st.integers(5, 70)),
    st.builds("{} >= {}".format, st.sampled_from(NAMES), st.integers(0, 9)),
    st.builds("{} < {} < {}".format, st.integers(0, 3), st.sampled_from(NAMES), st.integers(9, 99)),
    st.builds("{} % {} == 0".format, st.sampled_from(NAMES), st.integers(1, 4)),
    st.sampled_from(
        ["a + b == seq", "a <= b", "a != 3", "a*b <= 64 or seq > 7", "seq % 4 == 1", "b == 6", "2*a <= 31"]
    ),
)


@quick(50)
@given(st.lists(LINES, max_size=5))
def test_declaring_what_was_formatted_gives_the_same_domain(where: list[str]) -> None:
    try:
        domain = declare_domain(NAMES, where)
    except DeclarationError as error:
        assert error.finding.code == "AS003"
        return
    assert declare_domain(NAMES, format_domain(domain)) == domain


@quick(100)
@given(st.lists(LINES, max_size=5), st.fixed_dictionaries({name: st.integers(1, 20) for name in NAMES}))
def test_a_domain_contains_what_keeps_its_rules(where: list[str], sizes: dict[str, int]) -> None:
    rules = [parse_condition(rule) for rule in where]
    kept = all(holds(rule, sizes) for rule in rules)
    try:
        domain = declare_domain(NAMES, where)
    except DeclarationError:
        assert not kept
        return
    assert domain.contains(sizes) is kept
    assert Domain(tuple(map(Dim, NAMES))).narrowed(*rules).contains(sizes) is kept
    assert all(holds(condition, sizes) for condition in domain.conditions()) is kept
