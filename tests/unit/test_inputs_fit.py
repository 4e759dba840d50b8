"""Expressions are found from sizes alone, and what follows none is never given one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.domain import Expr, declare_domain, evaluate, parse_expr, simplify
from anyshape.inputs.fit import Axis, fit_axis
from anyshape.inputs.probe_sizes import base_points, choose_example, other_points, step_points

NAMES = ("a", "b", "c")
BASE = {"a": 7, "b": 11, "c": 13}
FAR = {"a": 67, "b": 71, "c": 73}


def fit(function: Callable[..., int]) -> Expr | None:
    memory: dict[tuple[int, ...], int] = {}

    def ask(point: dict[str, int]) -> int:
        return memory.setdefault(tuple(point[name] for name in NAMES), function(**point))

    for point in (BASE, {"a": 41, "b": 37, "c": 31}, {"a": 3, "b": 5, "c": 2}):
        ask(point)
    steps = {name: FAR[name] for name in NAMES if ask({**BASE, name: FAR[name]}) != ask(BASE)}
    answers = lambda: [(dict(zip(NAMES, sizes, strict=True)), size) for sizes, size in memory.items()]  # noqa: E731
    return fit_axis(Axis(ask, answers, BASE, steps))  # type: ignore[arg-type]


EXPRESSIONS = [
    "5",
    "a",
    "a + b",
    "a + b + c",
    "2*a + 1",
    "32 + a - b",
    "a*b",
    "a*b*c",
    "a*b + c",
    "2*a*b - 1",
    "a//2",
    "(a + 1)//2",
    "(a - 3)//4 + 1",
    "3*a//2",
    "8*((a + 7)//8)",
    "a % 4",
    "min(a, 20)",
    "max(a, 20)",
    "min(a, b)",
    "max(b, c) + 1",
    "a*a + a",
    "(a + b)//2",
    "(a//2)*(b//3)",
    "a//2 + b//2",
    "(a + 1)//2*b",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_found_from_its_values(text: str) -> None:
    expr = parse_expr(text)
    found = fit(lambda **sizes: evaluate(expr, sizes))
    assert found is not None
    points = [{"a": a, "b": b, "c": c} for a in (1, 6, 19, 45) for b in (2, 8, 31) for c in (3, 50)]
    assert [evaluate(found, point) for point in points] == [evaluate(expr, point) for point in points]


@pytest.mark.parametrize(
    "function",
    [lambda a, b, c: a if a < 20 else b, lambda a, b, c: hash((a, b, c)) % 97, lambda a, b, c: a**3 % 11],
    ids=["a branch", "a hash", "a power"],
)
def test_what_follows_no_expression_gets_none(function: Callable[..., int]) -> None:
    assert fit(function) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(-3, 6), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2), st.integers(1, 9))
def test_every_multilinear_function_is_found(offset: int, a: int, b: int, both: int, divisor: int) -> None:
    expr = parse_expr(f"{a}*a + {b}*b + {both}*a*b + {offset}")
    assert fit(lambda **sizes: evaluate(expr, sizes)) == simplify(expr)
    halved = parse_expr(f"({a}*a + {offset})//{divisor}")
    found = fit(lambda **sizes: evaluate(halved, sizes))
    assert found is None or all(evaluate(found, {"a": n}) == evaluate(halved, {"a": n}) for n in range(7, 24))


DOMAINS = [
    ("no rules", ["a", "b", "c"], []),
    ("ranges", ["a", "b"], ["1 <= a <= 4", "b >= 100"]),
    ("multiples", ["a", "b"], ["a % 32 == 0", "b % 7 == 0"]),
    ("order", ["a", "b"], ["a <= b"]),
    ("an equality", ["a", "b", "c"], ["a + b == c"]),
    ("a narrow band", ["a", "b"], ["a + b == 32"]),
    ("one point", ["a"], ["a == 5"]),
]


@pytest.mark.parametrize(("names", "rules"), [row[1:] for row in DOMAINS], ids=[row[0] for row in DOMAINS])
def test_probes_lie_in_the_domain(names: list[str], rules: list[str]) -> None:
    domain = declare_domain(names, rules)
    example = choose_example(domain, {})
    base = next(base_points(domain, example))
    points = [example, base, *other_points(domain, base)]
    points += [point for name in names for point in step_points(domain, base, name)]
    assert all(domain.contains(point) for point in points)
    assert max(size for point in points for size in point.values()) <= 32 * 113


def test_probes_are_distinct_where_they_can_be() -> None:
    domain = declare_domain(["a", "b", "c", "d"], ["a <= b"])
    base = next(base_points(domain, {}))
    other = next(other_points(domain, base))
    assert len(set(base.values())) == 4 and not set(base.values()) & set(other.values())


def test_ten_dims_are_probed_without_delay() -> None:
    names = [f"d{index}" for index in range(10)]
    domain = declare_domain(names, ["d0 + d1 <= d2", "d3 <= d4"])
    assert len(set(next(base_points(domain, {})).values())) == 10
