"""The rule that exploring learns is the one under which the module answers: no wider, no narrower."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from anyshape.domain import Dim, Domain, holds, parse_condition
from anyshape.explore import explore
from anyshape.explore.rules import find_hole
from anyshape.records.explored import Explored
from anyshape.records.verdict import Refusal

Truth = Callable[..., bool]
_POINTS = 2000

# name, dims, where the module answers, sizes of the example
TABLE: list[tuple[str, str, Truth, tuple[int, ...]]] = [
    ("u32", "h w", lambda h, w: h % 32 == 0 and w % 32 == 0, (64, 64)),
    ("win4", "h w", lambda h, w: h % 4 == 0 and w % 4 == 0, (4, 8)),
    ("past48", "past seq", lambda past, seq: past + seq <= 48, (2, 5)),
    (
        "bcast",
        "a b c d",
        lambda a, b, c, d: (a == c or a == 1 or c == 1) and (b == d or b == 1 or d == 1),
        (3, 4, 3, 4),
    ),
    ("pos16", "batch seq", lambda batch, seq: seq in (1, 16), (2, 16)),
    ("several", "batch h w", lambda batch, h, w: h % 4 == 0 and w % 4 == 0 and h * w > 16, (2, 16, 24)),
    ("m7", "h w", lambda h, w: h % 7 == 0 and w % 7 == 0, (14, 7)),
    ("unet1", "h w", lambda h, w: w % 2 == 0 and h % 2 == 0, (8, 8)),
    ("view20", "n", lambda n: n % 20 == 0, (40,)),
    ("view11", "n", lambda n: n % 11 == 0, (33,)),
    ("view_bn20", "b n", lambda b, n: b * n % 20 == 0, (4, 5)),
    ("eq", "a b", lambda a, b: a == b, (5, 5)),
    ("eq3", "a b c", lambda a, b, c: a == b == c, (5, 5, 5)),
    ("le", "a b", lambda a, b: a <= b, (3, 5)),
    ("min", "h w", lambda h, w: h >= 7 and w >= 11, (20, 20)),
    ("max", "seq b", lambda seq, b: seq <= 77, (20, 3)),
    ("double", "a b", lambda a, b: a == 2 * b, (6, 3)),
    ("plus1", "a b", lambda a, b: a == b + 1, (4, 3)),
    ("expand", "a b", lambda a, b: a == b or a == 1, (4, 4)),
    ("sum3", "a b c", lambda a, b, c: a + b == c, (2, 3, 5)),
    ("sumle", "a b c", lambda a, b, c: a + b <= c, (2, 3, 9)),
    ("conv", "h", lambda h: h >= 5 and (h - 5) % 3 == 0, (20,)),
    ("mod3", "n", lambda n: n % 3 == 0 and n >= 6, (12,)),
    ("odd", "n", lambda n: n % 2 == 1, (7,)),
    ("sub", "a b", lambda a, b: a - b <= 4, (5, 5)),
    ("two", "n", lambda n: n % 2 == 0 or n == 1, (4,)),
    ("range", "n", lambda n: 4 <= n <= 100, (20,)),
    ("lcm", "n", lambda n: n % 12 == 0, (24,)),
    ("m128", "n b", lambda n, b: n % 128 == 0, (128, 2)),
    ("m64_ex", "n b", lambda n, b: n % 64 == 0, (64, 2)),
    ("mul", "a b c", lambda a, b, c: a * b == c, (2, 3, 6)),
    ("divis", "a b", lambda a, b: a % b == 0, (12, 4)),
    ("hole", "n", lambda n: n != 1, (4,)),
    ("four", "b s h w", lambda b, s, h, w: h % 8 == 0 and w % 16 == 0 and s <= 32, (2, 5, 16, 32)),
    ("gqa", "h k s", lambda h, k, s: h % k == 0, (8, 2, 5)),
    ("mm", "b m k k2 n", lambda b, m, k, k2, n: k == k2, (2, 3, 4, 4, 5)),
    ("prod", "h w", lambda h, w: h * w <= 256, (4, 4)),
    ("atleast", "b n", lambda b, n: b * n >= 2, (2, 4)),
    ("chain", "h w", lambda h, w: h >= 16 and w >= 16 and h % 16 == 0 and w % 16 == 0, (32, 48)),
]


class Cheap:
    """Stands in for the estimate of work: proportional to the sizes."""

    cheap = 2_000_000
    in_proportion = 10**12
    is_thorough = False
    is_dear = False

    def operations(self, sizes: Any) -> int:
        return self(sizes)

    def __call__(self, sizes: Any) -> int:
        return 200 * sum(sizes.values())

    def excess(self, sizes: Any) -> str:
        return "" if self(sizes) <= self.cheap else "too much work"


class Dear(Cheap):
    """A model of which few calls are in proportion to the export."""

    is_dear = True
    in_proportion = 0

    def refuses_early(self, sizes: Any) -> bool:
        return False


def explore_truth(dims: str, truth: Truth, example: tuple[int, ...]) -> tuple[Explored, list[dict[str, int]]]:
    """What is learned of a module that answers where `truth` holds, and the points at which it was called."""
    names = dims.split()
    called: list[dict[str, int]] = []

    def try_sizes(sizes: Any) -> Refusal | None:
        called.append(dict(sizes))
        return None if truth(**sizes) else Refusal(dict(sizes), "refused")

    declared = SimpleNamespace(
        domain=Domain(tuple(Dim(name) for name in names)), example_sizes=dict(zip(names, example, strict=True))
    )
    return explore(declared, try_sizes, Cheap()), called  # type: ignore[arg-type]


def points_around(example: dict[str, int]) -> list[dict[str, int]]:
    """Points far and near, half of them with several dims at one size."""
    random = Random(7)
    found = []
    for turn in range(_POINTS):
        point = {
            name: max(
                1,
                random.choice(
                    [
                        random.randint(1, 40),
                        random.randint(1, 200),
                        size + random.randint(-2, 2),
                        size * random.randint(1, 6),
                    ]
                ),
            )
            for name, size in example.items()
        }
        if turn % 2:
            together = random.sample(list(example), random.randint(1, len(example)))
            point.update(dict.fromkeys(together, random.randint(1, 30)))
        found.append(point)
    return found


@pytest.mark.parametrize(("dims", "truth", "example"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_learned_rule_is_where_the_module_answers(dims: str, truth: Truth, example: tuple[int, ...]) -> None:
    explored, called = explore_truth(dims, truth, example)
    assert explored.is_explained
    conditions = [rule.condition for rule in explored.rules]
    points = points_around(dict(zip(dims.split(), example, strict=True)))
    wrong = [point for point in points if all(holds(each, point) for each in conditions) != bool(truth(**point))]
    assert not wrong, f"{[str(each) for each in conditions]} is untrue at {wrong[0]}"
    assert len(called) <= 900


UNTOLD: list[tuple[str, Truth, tuple[int, ...]]] = [
    ("n", lambda n: bin(n).count("1") % 2 == 0, (3,)),
    ("b h w", lambda b, h, w: (h // 4) * (w // 4) in (1, 16), (2, 16, 16)),
]


@pytest.mark.parametrize(("dims", "truth", "example"), UNTOLD, ids=["bits", "table of patches"])
def test_a_rule_that_no_candidate_describes_is_not_invented(dims: str, truth: Truth, example: tuple[int, ...]) -> None:
    explored, _ = explore_truth(dims, truth, example)
    assert not explored.is_explained


def test_no_point_is_tried_twice() -> None:
    _, called = explore_truth("h w", lambda h, w: h % 32 == 0 and w % 32 == 0, (64, 64))
    assert len(called) == len({tuple(point.items()) for point in called})


def test_a_size_that_only_1_broadcasts_against_is_pinned() -> None:
    explored, _ = explore_truth("batch seq", lambda batch, seq: seq in (1, 16), (2, 16))
    assert explored.pinned == {"seq": 16}


def test_a_condition_of_a_capture_is_tried_where_no_point_has_shown_it() -> None:
    """A detector of 30 boxes: three maps of an eighth to a 32nd of the picture, whose sides fit, have as many positions."""
    sides = [parse_condition(f"({name} + 7)//8 == 4*(({name} + 31)//32)") for name in "hw"]
    enough = parse_condition("21*((h + 31)//32)*((w + 31)//32) >= 30")
    conditions = [*sides, enough]
    of_the_example_alone = parse_condition("w >= 33")

    def try_sizes(sizes: Any) -> Refusal | None:
        answers = all(holds(each, sizes) for each in conditions)
        return None if answers else Refusal(dict(sizes), "refused")

    domain = Domain((Dim("b"), Dim("h"), Dim("w")))
    declared: Any = SimpleNamespace(domain=domain, example_sizes={"b": 2, "h": 64, "w": 96})
    explored = explore(declared, try_sizes, Dear(), candidates=lambda _: [[of_the_example_alone, *conditions]])  # type: ignore[arg-type]
    assert {rule.condition for rule in explored.rules} == set(conditions)


def test_a_condition_of_a_capture_may_leave_out_sizes_that_broadcast() -> None:
    """Maps that are added up have equal widths, or one of them is 1 wide."""
    condition = parse_condition("4*((w + 31)//32) == (w + 7)//8")
    tried: set[int] = set()

    def try_sizes(sizes: Any) -> Refusal | None:
        tried.add(sizes["w"])
        answers = holds(condition, sizes) or sizes["w"] <= 8
        return None if answers else Refusal(dict(sizes), "refused")

    declared: Any = SimpleNamespace(domain=Domain((Dim("b"), Dim("w"))), example_sizes={"b": 2, "w": 96})
    explored = explore(declared, try_sizes, Cheap(), candidates=lambda _: [[condition]])  # type: ignore[arg-type]
    assert [str(rule.condition) for rule in explored.rules] == ["4*((w + 31)//32) == (w + 7)//8 or (w + 7)//8 == 1"]
    assert not tried >= set(range(1, 131))  # which are tried of a list of single sizes


WIDTH = "(w + 3)//4 == 8*((w + 31)//32)"
HEIGHT = "(h + 3)//4 == 8*((h + 31)//32)"


def explore_dear(truth: Truth, *conditions: str) -> tuple[Explored, list[dict[str, int]], list[int]]:
    """What is learned of a dear model of pictures, the points at which it was called, and how many of these came before
    each capture, which shows the conditions."""
    called: list[dict[str, int]] = []
    captured: list[int] = []

    def try_sizes(sizes: Any) -> Refusal | None:
        called.append(dict(sizes))
        return None if truth(**sizes) else Refusal(dict(sizes), "refused")

    def candidates(refused: Any) -> Any:
        captured.append(len(called))
        yield [parse_condition(each) for each in conditions]

    declared: Any = SimpleNamespace(
        domain=Domain((Dim("b"), Dim("h"), Dim("w"))), example_sizes={"b": 2, "h": 64, "w": 96}
    )
    return explore(declared, try_sizes, Dear(), candidates=candidates), called, captured  # type: ignore[arg-type]


def is_side(size: int) -> bool:
    """Whether maps of a quarter and a 32nd of a side, of which the smaller is enlarged 8 times, fit; 1 broadcasts."""
    return (size + 3) // 4 in (1, 8 * ((size + 31) // 32))


def test_conditions_of_a_capture_are_taken_before_dims_of_a_dear_model_are_moved_together() -> None:
    explored, called, captured = explore_dear(lambda b, h, w: is_side(h) and is_side(w), WIDTH, HEIGHT)
    assert {str(rule.condition) for rule in explored.rules} == {
        f"{HEIGHT} or (h + 3)//4 == 1",
        f"{WIDTH} or (w + 3)//4 == 1",
    }
    assert len(captured) == 1
    moved_together = [sizes for sizes in called[: captured[0]] if sizes["h"] != 64 and sizes["w"] != 96]
    assert len(moved_together) <= 6  # the first sizes that are tried
    assert len(called) <= 180


def test_conditions_that_miss_a_rule_about_two_dims_do_not_spare_that_these_are_moved_together() -> None:
    explored, _, captured = explore_dear(lambda b, h, w: is_side(h) and is_side(w) and h * w <= 64 * 96, WIDTH, HEIGHT)
    assert len(captured) == 2
    assert {str(rule.condition) for rule in explored.rules} == {
        "h*w <= 6144",
        f"{HEIGHT} or (h + 3)//4 == 1",
        f"{WIDTH} or (w + 3)//4 == 1",
    }


def test_a_product_that_is_not_1_leaves_no_hole_in_a_dim() -> None:
    assert find_hole(parse_condition("n != 3")) == 3
    assert find_hole(parse_condition("h//4*(w//4) != 1")) is None
