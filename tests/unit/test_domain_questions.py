from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import anyshape.domain
from anyshape.domain import (
    Compare,
    Decision,
    Dim,
    Domain,
    Expr,
    Number,
    Op,
    Range,
    Ref,
    Truth,
    Undecided,
    decide,
    declare_domain,
    find_contradiction,
    find_point,
    is_empty,
    parse_condition,
    parse_expr,
    range_of,
    smallest_known_point,
    smallest_point,
)
from anyshape.domain.solver_questions import _Search, divide_multiples
from anyshape.findings import InternalError

DECODER = declare_domain(
    ["batch", "seq", "past", "total"], ["1 <= batch <= 64", "past >= 0", "past + seq == total", "total <= 4096"]
)
OPEN = declare_domain(["a", "b", "c"])


@pytest.mark.parametrize(
    ("condition", "counterexample"),
    [
        ("total >= 1", None),
        ("seq <= 4096", None),
        ("past < total", None),
        ("batch*total <= 64*4096", None),
        ("total//total == 1", None),
        ("past + seq < 4096", (1, 1, 4095, 4096)),
        ("batch*seq % 2 == 1", (2, 1, 0, 1)),
        ("seq > 1", (1, 1, 0, 1)),
        ("past//past == 1", (1, 1, 0, 1)),
        ("batch != 64 or seq != 7", (64, 7, 0, 7)),
    ],
)
def test_decide(condition: str, counterexample: tuple[int, ...] | None) -> None:
    decision = decide(DECODER, parse_condition(condition))
    expected = None if counterexample is None else dict(zip(DECODER.names, counterexample, strict=True))
    assert decision == Decision("proved" if expected is None else "refuted", expected)


@pytest.mark.parametrize(
    "condition",
    ["(a*b)//a == b", "a//b*b <= a", "(a + 31)//32*32 >= a", "a*b >= a", "min(a, b) <= max(a, c)", "a % b < b"],
)
def test_facts_of_arithmetic_are_proved_without_any_range(condition: str) -> None:
    assert decide(OPEN, parse_condition(condition)).proved


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("past + seq", Range(1, 4096)),
        ("seq - past", Range(-4094, 4096)),
        ("batch*total", Range(1, 64 * 4096)),
        ("past % 2", Range(0, 1)),
        ("total//past", Range(1, 4096)),
    ],
)
def test_range_of(expr: str, expected: Range) -> None:
    assert range_of(DECODER, parse_expr(expr)) == expected


def test_a_range_without_an_end_says_so() -> None:
    assert range_of(OPEN, parse_expr("a*b")) == Range(1, None)
    assert range_of(OPEN, parse_expr("a - b")) == Range(None, None)
    assert range_of(declare_domain(["a", "b"], ["a*b <= 4096"]), parse_expr("a + b")) == Range(2, 4097)


def test_nothing_has_a_value_in_an_empty_domain() -> None:
    empty = Domain(OPEN.dims, (parse_condition("a < a"),))
    assert is_empty(empty) is Truth.YES
    assert find_point(empty) is None
    assert smallest_point(empty) is None
    assert range_of(empty, parse_expr("a")) is None
    assert decide(empty, parse_condition("a == 7")).proved
    assert range_of(OPEN, parse_expr("a//0")) is None


def test_dims_that_nothing_speaks_of_keep_their_smallest_size() -> None:
    assert smallest_point(DECODER, parse_condition("batch == 7")) == {"batch": 7, "seq": 1, "past": 0, "total": 1}
    assert smallest_point(OPEN, parse_condition("a*b >= 30")) == {"a": 5, "b": 6, "c": 1}


@pytest.mark.parametrize(
    ("condition", "smallest"),
    [
        ("a + b >= 9", (1, 8, 1)),
        ("a >= 3 or b >= 3 or c >= 3", (1, 1, 3)),
        ("a*b*c == 30", (2, 3, 5)),
        ("a != b and b != c and a != c", (1, 2, 3)),
    ],
)
def test_of_equal_sums_the_first_in_the_order_of_the_dims_wins(condition: str, smallest: tuple[int, ...]) -> None:
    point = smallest_point(OPEN, parse_condition(condition))
    assert point is not None
    assert tuple(point.values()) == smallest


def test_questions_about_no_dims_have_answers() -> None:
    nothing = declare_domain([])
    assert is_empty(nothing) is Truth.NO
    assert find_point(nothing) == {}
    assert smallest_point(nothing) == {}
    assert decide(nothing, parse_condition("1 < 2")).proved
    assert decide(nothing, parse_condition("1 > 2")) == Decision("refuted", {})
    assert range_of(nothing, parse_expr("3 + 4")) == Range(7, 7)


def test_a_contradiction_has_no_rule_to_spare() -> None:
    rules = ["a <= b", "b <= c", "c < a", "a % 2 == 0", "b != 7"]
    domain = Domain(OPEN.dims, tuple(map(parse_condition, rules)))
    assert [str(rule) for rule in find_contradiction(domain)] == ["a <= b", "b <= c", "c < a"]
    assert find_contradiction(OPEN) == ()
    assert find_contradiction(domain, steps=0) == ()


def test_an_answer_is_not_a_bool() -> None:
    with pytest.raises(TypeError, match="UNKNOWN"):
        bool(is_empty(OPEN))


def test_not_knowing_is_an_error_that_survives_pickling() -> None:
    domain = Domain(OPEN.dims, tuple(map(parse_condition, ["a*b == 1000003", "a > 1", "b > 1"])))
    with pytest.raises(Undecided) as caught:
        smallest_point(domain, steps=1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert "a*b == 1000003" in str(copy)
    assert decide(domain, parse_condition("a == 1"), steps=1) == Decision("unknown")
    assert smallest_known_point(domain, steps=1) is None
    assert smallest_known_point(OPEN, parse_condition("a == 7")) == {"a": 7, "b": 1, "c": 1}


def test_a_question_that_takes_long_ends_by_steps_alone() -> None:
    dims = tuple(Dim(name) for name in "abcd")
    decision = decide(Domain(dims, ()), parse_condition("a*b*c*d + a*b + c*d != 123456791"), steps=5_000_000)
    assert decision.status == "refuted"
    files = Path(anyshape.domain.__file__).parent.glob("*.py")
    assert not [file.name for file in files if re.search(r"\bmonotonic|perf_counter|import time\b", file.read_text())]


def test_when_time_ends_while_shrinking_the_best_so_far_is_the_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(self: _Search) -> None:
        raise Undecided("anything", 1)

    monkeypatch.setattr(_Search, "shrink", give_up)
    decision = decide(OPEN, parse_condition("a*b != 35"))
    assert decision.status == "refuted"
    assert decision.counterexample is not None
    assert decision.counterexample["a"] * decision.counterexample["b"] == 35


def test_a_wrong_point_of_the_solver_is_our_fault_and_never_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyshape.domain.solve.Session.find", lambda *_: {"a": 1, "b": 1})
    with pytest.raises(InternalError, match="AS902"):
        find_point(OPEN, parse_condition("a > b"))


def test_the_package_exports_what_it_lists_and_nothing_else() -> None:
    for name in anyshape.domain.__all__:
        assert getattr(anyshape.domain, name) is not None
    assert dir(anyshape.domain) == sorted(anyshape.domain.__all__)
    with pytest.raises(AttributeError, match="decied"):
        anyshape.domain.decied  # noqa: B018


def _padded(size: Expr, multiple: Expr) -> Expr:
    return size + (multiple - size % multiple) % multiple


@pytest.mark.parametrize("multiple", [Number(4), Op("min", (Ref("h"), Ref("w")))])
def test_windows_of_padded_images_are_proved(multiple: Expr) -> None:
    """As Swin cuts its windows: z3 alone does not decide it."""
    high, wide = _padded(Ref("h"), multiple), _padded(Ref("w"), multiple)
    windows = (high // multiple) * (wide // multiple) * multiple * multiple
    domain = Domain((Dim("b", 1), Dim("h", 1), Dim("w", 1)))
    assert decide(domain, Compare("==", Ref("b") * high * wide, Ref("b") * windows)).status == "proved"
    assert decide(domain, Compare("==", Ref("b") * windows % (high * wide), Number(0))).status == "proved"
    assert decide(domain, Compare("==", Ref("b") * high * wide, Ref("b") * windows + 1)).status == "refuted"


def test_an_identity_that_divides_by_what_may_be_zero_is_not_proved() -> None:
    domain = Domain((Dim("b", 1), Dim("h", 0)))
    assert decide(domain, Compare("==", Ref("b") * Ref("h") % Ref("h"), Number(0))).status == "refuted"


def test_an_equality_of_products_follows_from_that_of_factors() -> None:
    domain = Domain((Dim("h", 1), Dim("w", 1)))
    halves = [(1 + size // 2 + size // 2 % 2) // 2 for size in (Ref("h"), Ref("w"))]
    quarters = [(2 + size) // 4 for size in (Ref("h"), Ref("w"))]
    assert decide(domain, Compare("==", 3 * halves[0] * halves[1], 3 * quarters[0] * quarters[1])).status == "proved"
    assert decide(domain, Compare("==", 3 * halves[0] * halves[1], 2 * quarters[0] * quarters[1])).status == "refuted"


def test_a_product_with_a_factor_that_has_no_value_somewhere_is_not_proved() -> None:
    domain = Domain((Dim("b", 1), Dim("h", 1), Dim("w", 1)))
    half, quarter = (1 + Ref("w") // 2 + Ref("w") // 2 % 2) // 2, (2 + Ref("w")) // 4
    nothing = Ref("b") * (Ref("h") - 5) % (Ref("h") - 5) + 1
    assert decide(domain, Compare("==", nothing * half, quarter)).status != "proved"


@pytest.mark.parametrize(
    ("condition", "divided"),
    [
        ("min(4*(h//4), 4*(w//4)) > 8", "min(h, w) > 8"),
        ("8*(h//4) % 16 == 0", "2*h % 16 == 0"),
        ("h//4 != 1", "h//4 != 1"),
        ("4*(h//4)*(w//4) == n", "h//2*(w//2) == n"),
        ("3*(h//8) == n", "3*(h//8) == n"),
        ("2*(n//2) == n", "2*(n//2) == n"),
    ],
)
def test_multiples_are_divided_where_the_domain_says_so(condition: str, divided: str) -> None:
    domain = declare_domain(["h", "w", "n"], ["h % 4 == 0", "w % 4 == 0"])
    assert str(divide_multiples(parse_condition(condition), domain)) == divided
