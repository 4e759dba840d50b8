"""Points that show all facts together, at least cost."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from anyshape.domain import Dim, Domain, parse_condition
from anyshape.domain.telling_points import choose_telling, compares_of, facts_of, find_corner, primes_between

BATCH = Domain((Dim("batch", 1, 8),))
BOTH = Domain((Dim("batch", 1, 8), Dim("seq", 1, 128)))


def product(sizes: Mapping[str, int]) -> int:
    found = 1
    for size in sizes.values():
        found *= size
    return found


def test_primes_have_no_smaller_divisor() -> None:
    assert primes_between(2, 113) == tuple(n for n in range(2, 114) if all(n % divisor for divisor in range(2, n)))
    assert primes_between(7, 13) == (7, 11, 13)


def test_of_one_dim_its_ends_and_an_odd_size_are_kept() -> None:
    points = [{"batch": size} for size in (5, 1, 8, 2, 3, 7, 4)]
    assert choose_telling(points, BATCH, (), product) == [{"batch": 1}, {"batch": 8}, {"batch": 3}]


def test_each_end_is_kept_where_the_other_dims_are_small() -> None:
    points = [{"batch": batch, "seq": seq} for batch in (1, 3, 8) for seq in (1, 2, 7, 128)]
    kept = choose_telling(points, BOTH, (), product)
    assert {"batch": 8, "seq": 128} not in kept
    assert any(point["batch"] == 8 for point in kept)
    assert any(point["seq"] == 128 and point["batch"] <= 3 for point in kept)


def test_both_sides_of_a_condition_are_kept_and_where_it_tips_over() -> None:
    condition = parse_condition("batch > 4")
    points = [{"batch": size} for size in range(1, 9)]
    kept = {point["batch"] for point in choose_telling(points, BATCH, [condition], product)}
    assert {3, 4, 5} <= kept


SIZES = st.fixed_dictionaries({"batch": st.integers(1, 8), "seq": st.integers(1, 128)})


@given(st.lists(SIZES, min_size=1, max_size=12))
def test_no_fact_is_lost_and_no_point_is_needless(points: list[dict[str, int]]) -> None:
    conditions = [parse_condition("batch + seq <= 64")]

    def facts(some: list[Mapping[str, int]]) -> frozenset[object]:
        return frozenset(fact for point in some for fact in facts_of(point, BOTH, conditions, compares_of(conditions)))

    kept = choose_telling(points, BOTH, conditions, product)
    assert facts(kept) == facts(list(points))
    for place in range(len(kept)):
        assert facts([*kept[:place], *kept[place + 1 :]]) != facts(kept)


def test_the_smallest_point_is_kept() -> None:
    points = [{"batch": batch, "seq": seq} for batch in (3, 1, 8) for seq in (128, 1, 2)]
    assert {"batch": 1, "seq": 1} in choose_telling(points, BOTH, (), product)


def test_a_corner_goes_as_far_as_it_may_cost() -> None:
    assert find_corner(BOTH, product, 1024) == [{"batch": 8, "seq": 128}]
    (corner,) = find_corner(BOTH, product, 300)
    assert 150 < product(corner) <= 300
    assert find_corner(BOTH, product, 0) == []
    assert find_corner(BATCH, product, 1024) == []
    assert find_corner(Domain((Dim("batch", 1, 8), Dim("seq", 1))), product, 1024) == []
