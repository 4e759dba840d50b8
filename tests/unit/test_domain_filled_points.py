"""A comparison of empty tensors shows nothing: each side of a condition is also met where no dim is 0."""

from __future__ import annotations

from anyshape.capture.guards import decide_guards
from anyshape.domain import Dim, Domain, choose_sizes, holds, parse_condition
from anyshape.domain.telling_points import choose_telling
from anyshape.records.captured import Guard

FROM_ZERO = Domain((Dim("b", 0), Dim("n", 0)))


def test_a_counterexample_has_no_empty_dim_where_one_can_be_found() -> None:
    (guard,) = decide_guards([Guard(parse_condition("n != 700"), "", None, by_user=True)], FROM_ZERO)
    assert (guard.counterexample, guard.further) == ({"b": 1, "n": 700}, ({"b": 0, "n": 700},))


def test_a_counterexample_is_empty_where_the_condition_fails_only_there() -> None:
    (guard,) = decide_guards([Guard(parse_condition("b > 0"), "", None, by_user=True)], FROM_ZERO)
    assert guard.counterexample == {"b": 0, "n": 0}


def test_both_sides_of_a_condition_are_chosen_without_empty_dims() -> None:
    condition = parse_condition("n != 700")
    points = choose_sizes(FROM_ZERO, example={"b": 2, "n": 5}, conditions=[condition]).points
    filled = [point for point in points if all(point.values())]
    assert {holds(condition, point) for point in filled} == {True, False}


def test_the_telling_points_keep_a_filled_one_for_each_side() -> None:
    condition = parse_condition("n != 700")
    points = [{"b": 0, "n": 700}, {"b": 0, "n": 3}, {"b": 1, "n": 700}, {"b": 1, "n": 3}]
    chosen = choose_telling(points, FROM_ZERO, [condition], lambda point: 1 + point["b"] * point["n"])
    assert {"b": 1, "n": 700} in chosen
