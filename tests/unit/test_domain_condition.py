from __future__ import annotations

import pytest

from anyshape.domain import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    Compare,
    Not,
    Number,
    Ref,
    all_of,
    any_of,
    conjuncts,
    dims_of,
    find_bound,
    format_condition,
    holds,
    negate,
    parse_condition,
    substitute,
)
from anyshape.domain.bound import Bound

a, b = Ref("a"), Ref("b")


@pytest.mark.parametrize(
    "text",
    [
        "1 <= batch <= 64",
        "a > b >= c",
        "a <= b and c <= d",
        "h % 32 == 0",
        "a < b or c == 1",
        "not a == b",
        "not (a < b or b < c)",
        "(a < b or b < c) and not not a != 3",
        "1 <= a <= 4 and b == 2",
        "a == b and b == c",
        "True",
        "False",
    ],
)
def test_a_condition_is_printed_as_it_is_written(text: str) -> None:
    assert format_condition(parse_condition(text)) == text
    assert str(parse_condition(text)) == text


def test_a_comparison_without_a_value_does_not_hold_and_its_opposite_does() -> None:
    condition = parse_condition("a // b == 1")
    at_zero = {"a": 3, "b": 0}
    assert not holds(condition, at_zero)
    assert holds(negate(condition), at_zero)
    assert negate(condition) == Not(condition)


def test_negation_goes_inwards() -> None:
    assert str(negate(parse_condition("1 <= a <= 4 or not b == 2"))) == "(1 > a or a > 4) and b == 2"
    assert negate(TRUE) == FALSE


def test_all_of_and_any_of_are_flat_and_know_one_part() -> None:
    one, two, three = (Compare("<", a, Number(value)) for value in (1, 2, 3))
    assert all_of([]) == TRUE
    assert all_of([one]) == one
    assert all_of([All((one, two)), three, one]) == All((one, two, three))
    assert any_of([]) == FALSE
    assert any_of([AnyOf((one, two)), two]) == AnyOf((one, two))
    assert conjuncts(All((one, All((two, three))))) == (one, two, three)


def test_a_join_of_one_part_cannot_be_built_by_hand() -> None:
    with pytest.raises(ValueError, match="all_of"):
        All((Compare("<", a, b),))
    with pytest.raises(ValueError, match="unknown comparison"):
        Compare("=", a, b)


def test_dims_and_substitution_reach_all_parts() -> None:
    condition = parse_condition("not (b < 1 or a == b)")
    assert dims_of(condition) == ("b", "a")
    assert str(substitute(condition, {"a": b, "b": a})) == "not (a < 1 or b == a)"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("a <= 4", Bound("a", max=4)),
        ("a < 4", Bound("a", max=3)),
        ("4 < a", Bound("a", min=5)),
        ("4 <= a", Bound("a", min=4)),
        ("a == 4", Bound("a", min=4, max=4)),
        ("2*a <= 65", Bound("a", max=32)),
        ("2*a > 65", Bound("a", min=33)),
        ("10 - a >= 3", Bound("a", max=7)),
        ("a % 8 == 0", Bound("a", multiple=8)),
        ("2*a % 8 == 0", Bound("a", multiple=4)),
        ("not a < 3", Bound("a", min=3)),
        ("a + b - b <= 3", None),
        ("2*a == 7", None),
        ("a != 3", None),
        ("a % 8 == 4", None),
        ("a % 8 <= 0", None),
        ("a <= b", None),
        ("a*a <= 9", None),
        ("a + 0*(3//a) <= 9", None),
        ("3 < 4", None),
        ("a <= 3 or a >= 9", None),
    ],
)
def test_a_bound_is_found_only_where_there_is_exactly_one(text: str, bound: Bound | None) -> None:
    assert find_bound(parse_condition(text)) == bound
