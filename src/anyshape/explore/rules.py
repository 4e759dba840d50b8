"""Learn the rules under which a module answers, from points at which it was tried.

A rule holds at every answered point; together the rules fail at every refused one. A set of rules that explains the points is
then put to the test: it has to predict fresh points, chosen to refute it. Where nothing explains them, there is no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, permutations, product
from random import Random

from anyshape.domain import (
    All,
    AnyOf,
    Compare,
    Condition,
    Domain,
    Number,
    Sizes,
    Undecided,
    any_of,
    dims_of,
    find_point,
    holds,
    negate,
    smallest_point,
)
from anyshape.explore.rule_grammar import LARGEST_MULTIPLE, candidate_tiers, complexity

Rules = tuple[Condition, ...]

_MOST_RULES = 12
_MOST_HOLES = 2
_FRESH = 48  # points that a set of rules predicts before it is believed; half of them inside, half outside
_ATTEMPTS = 4000
_PARTS = 4
_SERIES = 130
_FAR = 1 << 24
_BOX = {1: 200, 2: 48, 3: 14}  # dims -> the largest size of each
_VALUES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 20, 24, 28, 30, 32, 33, 40, 48, 60, 64, 96, 128)


def explain(answered: Sequence[Sizes], refused: Sequence[Sizes], captured: Sequence[Condition] = ()) -> Rules | None:
    """The simplest rules that hold where the module answered and fail where it refused; None where there are none.

    `captured` are rules that captures have shown: they are exact, and come before those of the grammar.
    """
    exact = [rule for rule in dict.fromkeys(captured) if all(holds(rule, sizes) for sizes in answered)]
    for tier in ([], *candidate_tiers(answered, refused)):
        candidates = [*exact, *tier]
        if (found := _cover(candidates, refused)) is not None:
            return found
    return None


def find_form_that_holds(rule: Condition, answered: Sequence[Sizes]) -> Condition | None:
    """The rule, or the same for sizes that may be 1 as well, which broadcasts; None where neither holds at all of the points.

    a == b   ->   a == b or b == 1
    A number stays as it is: a module that holds a table of 16 rows works at one size.
    """
    forms = [rule]
    if isinstance(rule, Compare) and rule.op == "==" and dims_of(rule.left) and dims_of(rule.right):
        forms += [any_of([rule, Compare("==", side, Number(1))]) for side in (rule.right, rule.left)]
    return next((form for form in forms if all(holds(form, sizes) for sizes in answered)), None)


def _is_for_broadcast(rule: AnyOf) -> bool:
    """Whether a rule is `a == b or b == 1`, as `find_form_that_holds` makes it: no list of single sizes."""
    equal, *others = rule.parts
    if not isinstance(equal, Compare) or equal.op != "==" or not (dims_of(equal.left) and dims_of(equal.right)):
        return False
    return others in [[Compare("==", side, Number(1))] for side in (equal.left, equal.right)]


def _cover(candidates: Sequence[Condition], refused: Sequence[Sizes]) -> Rules | None:
    """Few candidates that together fail at every refused point: the most telling first, then without the needless."""
    broken = {rule: frozenset(i for i, sizes in enumerate(refused) if not holds(rule, sizes)) for rule in candidates}
    left = frozenset(range(len(refused)))
    rules: list[Condition] = []
    while left:
        best = max(candidates, key=lambda rule: (len(broken[rule] & left), -complexity(rule)), default=None)
        if best is None or not broken[best] & left:
            return None
        rules.append(best)
        left -= broken[best]
    for rule in sorted(rules, key=complexity, reverse=True):
        others = [other for other in rules if other is not rule]
        if len(frozenset().union(*(broken[other] for other in others))) == len(refused):
            rules = others
    holes = sum(find_hole(rule) is not None for rule in rules)
    return tuple(rules) if len(rules) <= _MOST_RULES and holes <= _MOST_HOLES else None


def find_hole(rule: Condition) -> int | None:
    """The size that a rule `dim != size` leaves out; None for other rules. Further such sizes may exist (3, 10, 17, ...)."""
    if isinstance(rule, Compare) and rule.op == "!=" and isinstance(rule.right, Number) and len(dims_of(rule)) == 1:
        return rule.right.value
    return None


def fresh_points(
    domain: Domain, rules: Rules, answered: Sequence[Sizes], allowed: Callable[[Sizes], bool], seed: int
) -> Iterator[dict[str, int]]:
    """Points that could refute the rules: beside their numbers, then at random, half where all hold, half where one fails.

    Where chance finds too few inside, as of rules that tie dims in their own way, those of a small box follow.
    """
    random = Random(seed)
    names = list(dict.fromkeys(name for rule in rules for name in dims_of(rule)))
    seen = {tuple(sizes.items()) for sizes in answered}
    answered_keys = {
        tuple(sizes[name] for name in names) for sizes in answered
    }  # a point like these says nothing new inside
    wanted = {True: _FRESH // 2, False: _FRESH // 2}  # where all rules hold, and where one fails
    pools = {name: _pool(name, rules, answered) for name in domain.names}
    at_random = (_random_point(domain, rules, answered, pools, random) for _ in range(_ATTEMPTS))
    in_a_box = (point for point in _box(names, answered, random) if all(holds(rule, point) for rule in rules))
    for is_edge, point in chain(
        ((True, each) for each in _edge_points(rules, answered)), ((False, each) for each in chain(at_random, in_a_box))
    ):
        if not any(wanted.values()):
            return
        if tuple(point.items()) in seen or not allowed(point):
            continue
        key = tuple(point[name] for name in names)
        broken = sum(not holds(rule, point) for rule in rules)
        if is_edge or (broken == 0 and wanted[True] and key not in answered_keys) or (broken == 1 and wanted[False]):
            if not is_edge:
                wanted[broken == 0] -= 1
            seen.add(tuple(point.items()))
            answered_keys.add(key)
            yield point


def _edge_points(rules: Rules, answered: Sequence[Sizes]) -> Iterator[dict[str, int]]:
    """Each dim of a rule at the rule's numbers and beside them, the other dims of the rule small or as they were."""
    for rule in rules:
        names = dims_of(rule)
        numbers = [number + step for number in _numbers(rule) for step in (0, 1, -1) if number + step >= 1]
        for name, number in product(names, numbers):
            others = [other for other in names if other != name]
            for size in (1, 2) if others else ():
                yield {**answered[0], **dict.fromkeys(others, size), name: number}
            yield {**answered[0], name: number}
        yield from _boundary_points(rule, answered)
        if isinstance(rule, AnyOf) and len(names) == 1 and not _is_for_broadcast(rule):
            # a list of single sizes may be the beginning of a series
            yield from ({**answered[0], names[0]: size} for size in range(1, _SERIES + 1))
        if (hole := find_hole(rule)) is not None:
            near = range(max(1, hole - _SERIES), hole + _SERIES + 1)
            yield from ({**answered[0], names[0]: size} for size in near)


def points_at_boundaries(
    domain: Domain, rules: Rules, answered: Sequence[Sizes], allowed: Callable[[Sizes], bool]
) -> Iterator[Sizes]:
    """The points nearest to the boundary of a rule about two dims at which all other rules hold.

    Beside h % 4 == 0 and w % 4 == 0, no point right at the boundary of h*w >= 64 says anything about it, and h=4, w=12 does.
    """
    for rule in rules:
        others = [other for other in rules if other is not rule]
        for start, name, low, high in _boundaries(rule, answered):
            for side in (range(low, max(0, low - LARGEST_MULTIPLE), -1), range(high, high + LARGEST_MULTIPLE)):
                points = ({**start, name: size} for size in side)
                nearest = next((point for point in points if all(holds(other, point) for other in others)), None)
                if nearest is not None and domain.contains(nearest) and allowed(nearest):
                    yield nearest


def _boundary_points(rule: Condition, answered: Sequence[Sizes]) -> Iterator[dict[str, int]]:
    """Both sides of the boundary of a rule that bounds two dims together, at several sizes of the one."""
    for start, name, low, high in _boundaries(rule, answered):
        yield from ({**start, name: size} for size in (low, high))


def _boundaries(rule: Condition, answered: Sequence[Sizes]) -> Iterator[tuple[dict[str, int], str, int, int]]:
    """A point, one of its dims, and the two sizes of that dim between which the rule begins or ceases to hold."""
    names = dims_of(rule)
    if not isinstance(rule, Compare) or rule.op in ("==", "!=") or len(names) != 2:
        return
    for one, other in permutations(names):
        seen = sorted({sizes[one] for sizes in answered})
        between = [(seen[-1] * part + seen[0] * (_PARTS - part)) // _PARTS for part in range(_PARTS + 1)]
        for at in dict.fromkeys([*between, *seen[:_PARTS]]):
            start = {**answered[0], one: at}
            inside = {size: holds(rule, {**start, other: size}) for size in (1, _FAR)}
            if inside[1] == inside[_FAR]:
                continue
            low, high = 1, _FAR
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if holds(rule, {**start, other: middle}) == inside[1] else (low, middle)
            yield start, other, low, high


def _box(names: Sequence[str], answered: Sequence[Sizes], random: Random) -> Iterator[dict[str, int]]:
    """All small sizes of these dims, in any order; nothing where there are too many."""
    largest = _BOX.get(len(names), 0)
    sizes = list(product(range(1, largest + 1), repeat=len(names)))
    random.shuffle(sizes)
    for each in sizes if largest else ():
        yield {**answered[0], **dict(zip(names, each, strict=True))}


def _random_point(
    domain: Domain, rules: Rules, answered: Sequence[Sizes], pools: Mapping[str, Sequence[int]], random: Random
) -> dict[str, int]:
    point = dict(random.choice(answered))
    for name in random.sample(domain.names, random.randint(1, len(domain.names))):
        point[name] = random.choice(pools[name])
    return _with_ties(point, rules, random)


def _pool(name: str, rules: Rules, answered: Sequence[Sizes]) -> list[int]:
    """Sizes of a dim beside the numbers of the rules, at multiples and at half of them, and small ones."""
    numbers = {number for rule in rules if name in dims_of(rule) for number in _numbers(rule)}
    beside = {number + step for number in numbers for step in (-1, 0, 1)}
    steps = {number * factor // 2 for number in numbers for factor in (1, 2, 3, 4, 5, 6, 10) if number <= 128}
    known = {sizes[name] for sizes in answered}
    high = max(*known, 8)
    return sorted(size for size in {*beside, *steps, *known, *_VALUES} if 1 <= size <= max(2 * high, *beside, 8))


def _numbers(condition: object) -> Iterator[int]:
    if isinstance(condition, Number):
        yield condition.value
    for part in (
        *getattr(condition, "parts", ()),
        *getattr(condition, "args", ()),
        *(getattr(condition, side) for side in ("left", "right") if hasattr(condition, side)),
    ):
        yield from _numbers(part)


def _with_ties(point: dict[str, int], rules: Rules, random: Random) -> dict[str, int]:
    """The point with most equalities between dims kept: a random point would break nearly all of them."""
    for rule in rules:
        names = dims_of(rule)
        first = rule.parts[0] if isinstance(rule, (All, AnyOf)) and rule.parts else rule
        is_tie = isinstance(first, Compare) and first.op == "==" and len(names) == 2
        if is_tie and random.random() < 0.8 and not holds(rule, point):
            point = {**point, names[0]: point[names[1]]}
    return point


def pinned_dims(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> dict[str, int]:
    """Dims that have one size wherever the module answers, or that size and a broadcast 1, though others were tried."""
    found: dict[str, int] = {}
    for name in answered[0] if answered else ():
        seen = {sizes[name] for sizes in answered}
        is_one_size = len(seen) == 1 or (len(seen) == 2 and 1 in seen)
        if is_one_size and any(sizes[name] not in seen for sizes in refused):
            found[name] = max(seen)
    return found


def points_beyond(
    domain: Domain, rules: Sequence[Condition], captured: Sequence[Condition], allowed: Callable[[Sizes], bool]
) -> Iterator[Sizes]:
    """Points that show which conditions of captures are rules.

    Where the rules hold and a condition that is none of them does not: one may have been missed. Then where a rule does
    not hold, but as many other conditions as can: the module may refuse for another reason.
    """
    for condition in captured:
        needed = [negate(condition), *(rule for rule in rules if rule != condition)]
        with suppress(Undecided):
            if condition in rules:
                needed = _held_together(domain, needed, [each for each in captured if each != condition])
            point = smallest_point(domain, *needed)
            if point is not None and allowed(point):
                yield point


def _held_together(domain: Domain, needed: list[Condition], wanted: Sequence[Condition]) -> list[Condition]:
    """The needed conditions, and one after the other those of the wanted ones that hold somewhere together with them."""
    for condition in wanted:
        if condition not in needed and find_point(domain, *needed, condition) is not None:
            needed = [*needed, condition]
    return needed
