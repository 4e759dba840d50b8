"""Expressions in the shortest form that the rules of a domain allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.domain import Dim, Domain, Expr, Number, Op, Ref, evaluate, format_expr, parse_condition, parse_expr
from anyshape.domain.expr import Undefined
from anyshape.domain.solver_questions import simplify_within

DOMAIN = Domain((Dim("h", 32, 448, 32), Dim("w", 1, None, 8), Dim("n", 1, None), Dim("past", 0, 99)))


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("32*(h//32)", "h"),
        ("(h + 31)//32*32", "h"),
        ("(h + 4)//8", "h//8"),
        ("(h + 4)//8*((w + 4)//8)", "h//8*(w//8)"),
        ("(h + 3)//4*((w + 3)//4)", "h//4*(w//4)"),
        ("8*(h//8)*(w//8)*8", "h*w"),
        ("(h - 1)//2 + 1", "h//2"),
        ("h//4*2", "h//2"),
        ("h % 16 + n", "n"),
        ("(w - 1)//3 + 1", "(w + 2)//3"),
        ("max(1, n)", "n"),
        ("max(past, 0) + n", "n + past"),
        ("min(h, 448)", "h"),
        ("min(h, 100)", "min(h, 100)"),
        ("max(min(n, 512), 1)", "min(n, 512)"),
        ("n//2*2", "n//2*2"),
        ("unknown//8", "unknown//8"),
    ],
)
def test_the_shortest_form(text: str, shortest: str) -> None:
    found = simplify_within(parse_expr(text), DOMAIN)
    assert format_expr(found) in (shortest, format_expr(parse_expr(shortest)))


def test_relations_between_dims_decide_as_well() -> None:
    related = Domain((Dim("a", 1), Dim("b", 1)), (parse_condition("a <= b"),))
    assert simplify_within(parse_expr("max(a, b)"), related) == Ref("b")


leaves = st.one_of(st.integers(-9, 40).map(Number), st.sampled_from([Ref("h"), Ref("w"), Ref("n")]))
expressions = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda symbol, left, right: Op(symbol, (left, right)),
        st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]),
        inner,
        inner,
    ),
    max_leaves=5,
)


@given(expressions, st.integers(1, 14), st.integers(1, 9), st.integers(1, 50))
def test_the_value_is_the_same_at_every_size_of_the_domain(expr: Expr, h: int, w: int, n: int) -> None:
    sizes = {"h": 32 * h, "w": 8 * w, "n": n, "past": 0}
    try:
        value = evaluate(expr, sizes)
    except Undefined:
        return
    assert evaluate(simplify_within(expr, DOMAIN), sizes) == value
