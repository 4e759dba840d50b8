"""Chosen sizes on random domains: always in the domain, unequal, few, affordable, and at the ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.domain import Domain, choose_sizes, declare_domain, find_point, holds, negate, parse_condition
from anyshape.findings import DeclarationError

NAMES = ("a", "b", "c")


def quick(examples: int) -> Callable[..., object]:
    thorough = 10 if os.environ.get("ANYSHAPE_THOROUGH") == "1" else 1
    return settings(max_examples=examples * thorough, deadline=None)


RANGES = st.one_of(
    st.builds("{} <= {}".format, st.sampled_from(NAMES), st.integers(1, 5000)),
    st.builds("{} >= {}".format, st.sampled_from(NAMES), st.integers(0, 90)),
    st.builds("{} % {} == 0".format, st.sampled_from(NAMES), st.sampled_from([2, 3, 8, 32])),
)
RELATIONS = st.sampled_from(["a + b == c", "a >= b", "a*b <= 640", "c % 4 == 1 or a == 2", "2*a + 1 == c", "a != b"])
CONDITIONS = st.sampled_from(["a > 512", "b % 2 == 0", "a == b", "a*c < 40", "not (a > 3 and b > 7)", "c//a >= 2"])


def declared(where: list[str]) -> Domain | None:
    try:
        return declare_domain(NAMES, where)
    except DeclarationError:
        return None


def elements(sizes: Mapping[str, int]) -> int:
    return prod(sizes.values())


@quick(20)
@given(st.lists(RANGES, max_size=4), st.lists(RELATIONS, max_size=2), st.integers(1, 10**6), st.integers(1, 40))
def test_chosen_sizes_keep_every_rule(ranges: list[str], relations: list[str], budget: int, limit: int) -> None:
    domain = declared(ranges + relations)
    if domain is None:
        return
    points = choose_sizes(domain, cost=elements, budget=budget, limit=limit, example={"a": 3, "b": 3, "c": 5}).points
    assert 1 <= len(points) <= limit
    assert len({tuple(point.items()) for point in points}) == len(points)
    assert all(domain.contains(point) and tuple(point) == NAMES for point in points)
    assert len(points) == 1 or all(elements(point) <= budget for point in points)


@quick(30)
@given(st.lists(RANGES, max_size=5))
def test_without_relations_every_end_of_every_dim_is_met(ranges: list[str]) -> None:
    domain = declared(ranges)
    if domain is None:
        return
    points = choose_sizes(domain).points
    for dim in domain.dims:
        sizes = {point[dim.name] for point in points}
        assert dim.smallest in sizes
        assert dim.max is None or dim.largest_up_to(dim.max) in sizes
        assert len(sizes) >= 4 or dim.max is not None


@quick(20)
@given(st.lists(RANGES, max_size=2), st.lists(RELATIONS, max_size=1), st.lists(CONDITIONS, max_size=3))
def test_every_side_of_a_condition_that_can_be_met_is_met(
    ranges: list[str], relations: list[str], texts: list[str]
) -> None:
    domain = declared(ranges + relations)
    if domain is None:
        return
    conditions = [parse_condition(text) for text in texts]
    points = choose_sizes(domain, conditions=conditions).points
    for side in (*conditions, *map(negate, conditions)):
        assert any(holds(side, point) for point in points) or find_point(domain, side) is None
