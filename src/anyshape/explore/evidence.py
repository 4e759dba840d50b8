"""Choose further sizes to try or to compare, where a learned rule or a file may be wrong; how many, by the cost of an export.

A module that answers at h = 64 and not at 65 is tried at 66, 67, ... until it answers again: the step between is its multiple.
A dim that cannot move alone is moved together with the others that cannot.

A file that is not proved is compared at further sizes: at the numbers of the user's code, on both sides of each and far
beyond, where a line may do something else; and over each dim up to its end, in steps of one and a half, one beyond each power
of two, and at random ones; one dim at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from anyshape.domain import Compare, Condition, Domain, Number, Ref, Sizes, Undecided, find_point, holds
from anyshape.explore.cost_estimates import Costing
from anyshape.explore.limits import LITTLE
from anyshape.explore.rule_grammar import LARGEST_MULTIPLE
from anyshape.inputs import Declared
from anyshape.records.explored import Extent

Answers = Callable[[Sizes], bool]

_NEAR = (1, 2, 3, 5, -1, -2)
_SMALL = (1, 2, 3, 4, 6)
_TOGETHER = (1, 2, 3, 5, 6, 8)
_MOST_TOGETHER = 200
_FAR = 8
_FIRST = 8  # smaller sizes are tried anyway
_RANDOM = 8
_SHARE = 16  # one part in so many of all work
RUNS = 2  # comparing runs the module and the file where the module is tried here: so the same points are in proportion
_WORK = 30  # times the work of an ordinary point that learning a rule may take in all
_DEAR = 40
_PART_OF_ONE = 8  # one part in so many of the operations that are left is for one point
_USUAL = 2  # times the operations of the example: calls that are as dear as that


def gather_evidence(domain: Domain, base: Sizes, others: Sequence[Sizes], answers: Answers) -> Iterator[None]:
    """Try the module around answered points: thoroughly around `base`, at a few places around the others.

    `answers` keeps what it finds; it is False for points that are outside of the domain or cost too much. There is a pause
    after each dim has moved alone: rules about single dims may show by then.
    """
    stuck = [name for name in domain.names if not _move_alone(base, name, answers)]
    yield
    for other in others:
        for name in stuck:
            for size in _near(other[name]):
                answers({**other, name: size})
    together = itertools.chain.from_iterable(_moved_together(stuck, point) for point in (base, *others))
    for point in itertools.islice(together, _MOST_TOGETHER):
        answers(point)


def _near(size: int) -> list[int]:
    return [other for other in dict.fromkeys([*(size + step for step in _NEAR), *_SMALL]) if other >= 1]


def _move_alone(base: Sizes, name: str, answers: Answers) -> bool:
    """Whether the module answers at each near size of this dim. If not, the next sizes that it takes are found."""
    size = base[name]
    taken = [answers({**base, name: other}) for other in _near(size)]  # each is evidence, also after a refusal
    if all(taken):
        return True
    upward = _next_answered(base, name, range(size + 1, size + LARGEST_MULTIPLE + 1), answers)
    downward = _next_answered(base, name, range(size - 1, max(0, size - LARGEST_MULTIPLE - 1), -1), answers)
    for step in {abs(other - size) for other in (upward, downward) if other is not None}:
        for other in (size + 2 * step, size + 3 * step, size + step + 1, size + step + step // 2, size + 7 * step):
            answers({**base, name: other})
        _find_smallest(base, name, step, answers)
    return False


def _next_answered(base: Sizes, name: str, sizes: range, answers: Answers) -> int | None:
    return next((size for size in sizes if answers({**base, name: size})), None)


def _find_smallest(base: Sizes, name: str, step: int, answers: Answers) -> None:
    """Bisect, in multiples of the step, between an answered size and the nearest one below that is refused."""
    inside, outside = base[name] // step, 0
    rest = base[name] % step
    while inside - outside > 1:
        middle = (inside + outside) // 2
        if answers({**base, name: middle * step + rest}):
            inside = middle
        else:
            outside = middle


def _moved_together(stuck: Sequence[str], base: Sizes) -> Iterator[dict[str, int]]:
    """Points at which several of these dims have moved: to one size, by one step, by one factor, one of them to 1."""
    groups = [group for count in (len(stuck), 2) for group in itertools.combinations(stuck, count) if count > 1]
    for group in dict.fromkeys(groups):
        for size in _TOGETHER:
            yield {**base, **dict.fromkeys(group, size)}
        for step in (1, 4):
            yield {**base, **{name: base[name] + step for name in group}}
        for factor in (2, 3):
            yield {**base, **{name: base[name] * factor for name in group}}
    for one, other in itertools.permutations(stuck, 2):
        for size in (1, 4, 7):
            yield {**base, one: size, other: 1}
            yield {**base, one: base[other], other: size}
            yield {**base, one: base[one] + size, other: max(1, base[other] - size)}


def sizes_at_numbers(
    declared: Declared, numbers: Sequence[int], ends: dict[str, int] | None = None
) -> list[dict[str, int]]:
    """Every dim at every number, next to it, at multiples of it, between two and beyond all, one dim at a time.

    `ends` are the largest sizes of dims without an upper end. All points are in the domain; none is left out for its
    cost, which is for the caller to weigh. The most telling sizes of all numbers come first.
    """
    domain = declared.domain
    values = {
        name: dict.fromkeys(_around(numbers, (ends or {}).get(name, domain.dim(name).max))) for name in domain.names
    }
    longest = max(map(len, values.values()), default=0)
    rows = {name: list(each) for name, each in values.items()}
    proposed = ((name, rows[name][index]) for index in range(longest) for name in rows if index < len(rows[name]))
    points = [point for name, value in proposed if (point := _alone(declared, name, value)) is not None]
    return [dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points)]


def _around(numbers: Sequence[int], end: int | None) -> Iterator[int]:
    """Sizes of one dim up to its end. One more than twice a number separates a threshold from a rounded quotient."""
    numbers = [number for number in numbers if end is None or number - 1 <= end]
    if not numbers:
        return
    ordered = sorted(numbers)
    yield from _below(end, (value for number in numbers for value in (number, number + 1, number - 1)))
    for factor in (2, 3, 5):
        yield from _below(end, (factor * number + rest for number in numbers for rest in (0, 1, -1)))
    between = [(low + high) // 2 for low, high in itertools.pairwise(ordered)]
    yield from _below(end, between)
    farthest = end if end is not None else 8 * ordered[-1]
    random = Random(0)
    for _ in range(_FAR):
        low = min(ordered[0], farthest)
        yield random.randint(low, farthest)


def _below(end: int | None, values: Iterator[int] | list[int]) -> Iterator[int]:
    return (value for value in values if end is None or value <= end)


def _alone(declared: Declared, name: str, value: int) -> dict[str, int] | None:
    """The example's sizes with this one; where the rules forbid that, any sizes with it."""
    sizes = {**declared.example_sizes, name: value}
    if declared.domain.contains(sizes):
        return sizes
    if not declared.domain.dim(name).contains(value):
        return None
    try:
        return find_point(declared.domain, Compare("==", Ref(name), Number(value)))
    except Undecided:
        return None


def spread_sizes(declared: Declared, extent: Extent, cost: Costing) -> list[dict[str, int]]:
    """Points of the extent, as many as a share of all work suffices for, in random order; dims take turns."""
    rows = [_values(end.largest) for end in extent.ends]
    found: list[dict[str, int]] = []
    left = cost.all_work // _SHARE
    for row in itertools.zip_longest(*rows):
        for end, value in zip(extent.ends, row, strict=True):
            multiple = extent.domain.dim(end.name).multiple
            point = {**declared.example_sizes, end.name: (value or 0) // multiple * multiple}
            if value is None or point in found or not extent.domain.contains(point) or cost.excess(point):
                continue
            work = cost(point)
            if work <= left:
                left -= work
                found.append(point)
    return found


def _values(end: int) -> list[int]:
    """Sizes of one dim up to its end, in an order in which any first few are spread over all."""
    random = Random(end)
    found = [*_steps(end), *(random.randint(1, end) for _ in range(_RANDOM if end > _FIRST else 0))]
    found = list(dict.fromkeys(found))
    random.shuffle(found)
    return found


def _steps(end: int) -> Iterator[int]:
    size = _FIRST
    while size <= end:
        yield from (value for value in (size + 1, size + size // 2) if value <= end)
        size *= 2


class TrialAllowance:
    """Which further points may be tried: those of the domain that are cheap, until the work of all is spent.

    A few that cost more may be, where rules expect a refusal: refusals come early in a call.
    """

    def __init__(self, domain: Domain, cost: Costing, answered: Sequence[Mapping[str, int]]) -> None:
        """`answered` are points that are known to be answered, the example first."""
        self._domain = domain
        self._cost = cost
        self._left = _WORK * cost.cheap
        self._rules: Sequence[Condition] = ()
        self._dear = _DEAR
        self._least = min(map(cost.operations, answered))
        self._usual = _USUAL * cost.operations(answered[0])
        self._operations = cost.in_proportion // RUNS if cost.is_dear else None  # for points at which rules hold
        # For all answered calls before rules are known; None: no limit. Calls like that of the example are always allowed.
        self._whole_calls = None if cost.is_thorough else max(cost.in_proportion, LITTLE)
        self.denied = False  # whether a point at which the rules expect a refusal costs too much

    def expect_refusals(self, rules: Sequence[Condition]) -> None:
        self._rules, self.denied = rules, False

    def spend(self, sizes: Mapping[str, int]) -> None:
        """Take the operations of a call that was answered, and so ran to its end, from those of all such calls."""
        if self._whole_calls is not None:
            self._whole_calls = max(0, self._whole_calls - self._cost.operations(sizes))

    @property
    def _most_operations(self) -> float:
        """Of one call before rules are known."""
        return math.inf if self._whole_calls is None else max(self._whole_calls // _PART_OF_ONE, self._usual)

    def __call__(self, sizes: Mapping[str, int]) -> bool:
        if self._left <= 0 or not self._domain.contains(sizes):
            return False
        if not self._rules and self._cost.operations(sizes) > self._most_operations:
            return False
        is_inside = all(holds(rule, sizes) for rule in self._rules)
        if self._rules and is_inside and not self._takes_operations(sizes):
            return False
        price = self._cost(sizes)
        if price > self._cost.cheap and not is_inside:
            if self._dear and not self._cost.excess(sizes):
                self._dear -= 1
                return True
            self.denied = True
        self._left -= price if price <= self._cost.cheap else 0
        return price <= self._cost.cheap

    def _takes_operations(self, sizes: Mapping[str, int]) -> bool:
        """Whether a call at which rules hold is in proportion to what is left; if so, its operations are taken from that."""
        if self._operations is None:
            return True
        part = self._operations // _PART_OF_ONE
        if part < self._least or (operations := self._cost.operations(sizes)) > part:
            return False
        self._operations -= operations
        return True
