"""Expressions are found from sizes alone, and what follows none is never given one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.domain import Expr, declare_domain, dims_of, evaluate, parse_expr, simplify
from anyshape.findings import DeclarationError
from anyshape.inputs import declare
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
    "a*(a - 1)//2",
    "a*(a + 1)//2 + 3",
    "a*(a - 1)//2*b",
    "(2*a*a + 3*a)//5",
    "(a//4)*(b//4) + 1",
    "(a//4)*(a//4) + 1",
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


TIED = [
    ("h*w", ["h == w"]),
    ("h*w + 1", ["w == h"]),
    ("b*h*w", ["h == w"]),
    ("h*w", ["w == 2*h"]),
    ("(h//4)*(w//4) + 1", ["h == w", "h >= 4"]),
    ("h*(w - 1)//2", ["h == w", "h >= 2"]),
]


@pytest.mark.parametrize(("text", "rules"), TIED, ids=["; ".join([row[0], *row[1]]) for row in TIED])
def test_an_axis_of_tied_dims_is_found_and_names_them_all(text: str, rules: list[str]) -> None:
    size = parse_expr(text)
    module = torch.nn.Identity()
    by_function = lambda b, h, w: torch.zeros(b, evaluate(size, {"b": b, "h": h, "w": w}))  # noqa: E731
    leaf = declare(module, by_function, where=rules).leaves[0]
    assert set(dims_of(leaf.axes[1])) == set(dims_of(size))
    domain = declare_domain(["b", "h", "w"], rules)
    points = [{"b": b, "h": h, "w": w} for b in (1, 3) for h in range(1, 30) for w in range(1, 60)]
    inside = [point for point in points if domain.contains(point)]
    assert [evaluate(leaf.axes[1], point) for point in inside] == [evaluate(size, point) for point in inside]


def test_what_tied_dims_do_not_explain_is_not_explained() -> None:
    with pytest.raises(DeclarationError, match="AS017"):
        declare(torch.nn.Identity(), lambda h, w: torch.zeros(h * w if h % 5 else h), where=["h == w"])


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
