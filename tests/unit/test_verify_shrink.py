"""Shrinking: smaller, inside the domain, still failing, and it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.verify.shrink import Budget, shrink

Sizes = Mapping[str, int]


@dataclass
class Rule:
    holds: Callable[[Sizes], bool]

    def contains(self, sizes: Sizes) -> bool:
        return self.holds(sizes)


POSITIVE = Rule(lambda sizes: all(size >= 1 for size in sizes.values()))

ROWS: list[tuple[str, Sizes, Callable[[Sizes], bool], Rule, Sizes]] = [
    ("always", {"a": 64, "b": 512}, lambda s: True, POSITIVE, {"a": 1, "b": 1}),
    ("above three", {"a": 64, "b": 9}, lambda s: s["a"] > 3, POSITIVE, {"a": 4, "b": 1}),
    ("another than three", {"a": 7}, lambda s: s["a"] != 3, POSITIVE, {"a": 1}),
    ("odd", {"a": 31}, lambda s: s["a"] % 2 == 1 and s["a"] > 1, POSITIVE, {"a": 3}),
    ("both", {"a": 20, "b": 30}, lambda s: s["a"] > 2 and s["b"] > 5, POSITIVE, {"a": 3, "b": 6}),
    ("only large", {"a": 4096}, lambda s: s["a"] >= 513, POSITIVE, {"a": 513}),
    ("zero is in", {"a": 5}, lambda s: True, Rule(lambda s: s["a"] >= 0), {"a": 0}),
    ("multiples", {"a": 48}, lambda s: True, Rule(lambda s: s["a"] >= 8 and s["a"] % 8 == 0), {"a": 8}),
    ("tied", {"a": 9, "b": 9}, lambda s: True, Rule(lambda s: s["a"] == s["b"] >= 1), {"a": 1, "b": 1}),
    (
        "a sum",
        {"past": 7, "seq": 5, "total": 12},
        lambda s: s["past"] > 1,
        Rule(lambda s: min(s.values()) >= 1 and s["past"] + s["seq"] == s["total"]),
        {"past": 2, "seq": 1, "total": 3},
    ),
    ("nothing smaller", {"a": 1}, lambda s: True, POSITIVE, {"a": 1}),
]


@pytest.mark.parametrize(
    ("sizes", "fails", "domain", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_smallest_failing_sizes_are_found(
    sizes: Sizes, fails: Callable[[Sizes], bool], domain: Rule, expected: Sizes
) -> None:
    assert shrink(sizes, fails, domain, Budget(tries=200)) == expected


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 300), min_size=1),
    st.sets(st.integers(0, 100)),
    st.integers(1, 30),
)
def test_the_result_fails_lies_inside_and_costs_no_more_than_allowed(sizes: Sizes, salt: set[int], tries: int) -> None:
    asked: list[Sizes] = []

    def fails(candidate: Sizes) -> bool:
        asked.append(dict(candidate))
        return sum(candidate.values()) % 101 not in salt

    smallest = shrink(sizes, fails, POSITIVE, Budget(tries))
    assert POSITIVE.contains(smallest)
    assert smallest == dict(sizes) or smallest in asked
    assert len(asked) <= tries
    assert all(smallest[name] <= sizes[name] for name in sizes)
    assert all(POSITIVE.contains(each) for each in asked)
    assert len({tuple(each.items()) for each in asked}) == len(asked)


def test_no_time_no_tries() -> None:
    def fails(_: Sizes) -> bool:
        raise AssertionError("asked without time")

    assert shrink({"a": 5}, fails, POSITIVE, Budget(10, lambda: False)) == {"a": 5}
