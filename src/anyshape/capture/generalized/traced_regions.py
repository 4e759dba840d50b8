"""Models that do other things at other sizes: the condition that separates the sizes; each side is learned by itself.

    traces of two structures                            ->  a condition on the sizes, and both sides joined
    the same way of the code at 3, 30..39 of 1..500     ->  n == 3 or 30 <= n <= 39
    the same way of the code at 15, 31, 47, ...         ->  n % 16 == 15

A threshold is closed in on until both sides of it have been traced next to each other, as far as the domain has such
sizes. That it holds elsewhere too is shown by each side's own unseen traces, which would differ again if it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby
from typing import Any

from anyshape.capture.generalized.fit_reals import find_break
from anyshape.capture.generalized.learn import Answers, first_sizes, telling_sizes
from anyshape.capture.generalized.not_learned import NotCaptured
from anyshape.capture.generalized.record import Recorder
from anyshape.domain import (
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Ref,
    Sizes,
    Undecided,
    all_of,
    any_of,
    evaluate,
    find_point,
    negate,
)
from anyshape.findings import Reason
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, OutputTensor

_FIRST, _UNSEEN, _PROBES = 14, 10, 14
_MANY, _AROUND = 5, 3
_MODULI = range(2, 9)

Family = int
_MOST_WAYS, _MOST_RUNS, _FEWEST_REPEATS = 8, 32, 3
_MODULI_OF_WAYS = range(2, 129)


def find_split(
    recorder: Recorder, declared: Declared, answers: Answers, largest: int, suspects: Sequence[Sizes] = ()
) -> Condition | None:
    """A condition on each of whose sides the model does things that it does not do on the other; None if none is found.

    `suspects` are sizes at which it may do something else, though none next to them does.
    """
    search = _Search(recorder, declared, answers, suspects)
    for sizes in first_sizes(declared, answers, largest, _FIRST):
        search.look(sizes)
        if search.looks_like_a_loop:
            return None
    for sizes in telling_sizes(declared, answers, (), [sizes for sizes, _ in search.seen], None, _UNSEEN):
        search.look(sizes)
    search.look_where_it_answers(suspects)
    for expr in _expressions(declared.domain):
        found = search.threshold(expr) or search.remainder(expr) or search.single(expr) or search.remainder(expr)
        found = found or search.band(expr)
        if found is not None:
            return found
    return None


class _Search:
    """Sizes that were traced, each with the structure of its trace."""

    def __init__(self, recorder: Recorder, declared: Declared, answers: Answers, suspects: Sequence[Sizes]) -> None:
        self._recorder = recorder
        self._suspects = suspects
        self._declared = declared
        self._answers = answers
        self._families: dict[Any, Family] = {}
        self.seen: list[tuple[Sizes, Family]] = []

    def look(self, sizes: Sizes) -> Family:
        """Trace at these sizes."""
        signatures = tuple(step.signature for step in self._recorder.trace(sizes).steps)
        self.seen.append((sizes, self._families.setdefault(signatures, len(self._families))))
        return self.seen[-1][1]

    def _families_of(self, expr: Expr, is_inside: Callable[[int], bool]) -> tuple[set[Family], set[Family]]:
        """The structures where a value of the expression is inside, and those elsewhere."""
        inside = {family for sizes, family in self.seen if is_inside(evaluate(expr, sizes))}
        return inside, {family for sizes, family in self.seen if not is_inside(evaluate(expr, sizes))}

    @property
    def looks_like_a_loop(self) -> bool:
        """Whether nearly every size has a structure of its own: a loop over a size, which no condition splits."""
        return len(self._families) >= _MANY

    def threshold(self, expr: Expr) -> Condition | None:
        """`expr >= c`, where what is done below is never done above."""
        for low in sorted({evaluate(expr, sizes) for sizes, _ in self.seen})[:-1]:
            below, above = self._families_of(expr, low.__ge__)
            high = min(value for sizes, _ in self.seen if (value := evaluate(expr, sizes)) > low)
            closed = self._close_in(expr, (low, high), below, above) if not below & above else None
            if closed is not None:
                return Compare(">=", expr, Number(closed))
        return None

    def _close_in(self, expr: Expr, gap: tuple[int, int], below: set[Family], above: set[Family]) -> int | None:
        """The smallest value above the gap, after tracing inside it; None where a trace there fits neither side."""
        low, high = gap
        for _ in range(_PROBES):
            if high - low <= 1:
                break
            middle = (low + high) // 2
            sizes = self._sizes_at(expr, middle)
            if sizes is None:
                break
            family = self.look(sizes)
            if family in below:
                low = middle
            elif family in above:
                high = middle
            else:
                return None
        return high

    def _sizes_at(self, expr: Expr, value: int) -> Sizes | None:
        try:
            sizes = find_point(self._declared.domain, Compare("==", expr, Number(value)))
        except Undecided:
            return None
        return sizes if sizes is not None and self._answers(sizes) else None

    def single(self, expr: Expr) -> Condition | None:
        """`expr == c`, where what is done at this one value is done at no other."""
        for value in sorted({evaluate(expr, sizes) for sizes, _ in self.seen}):
            if self._is_apart(expr, value):
                self._look_around(expr, value)
                if self._is_apart(expr, value):
                    return Compare("==", expr, Number(value))
        return None

    def band(self, expr: Expr) -> Condition | None:
        """`expr >= c`, where a band begins: values side by side, at which is done what is done at no other."""
        for band in self._families.values():
            inside = [evaluate(expr, sizes) for sizes, family in self.seen if family == band]
            outside = [evaluate(expr, sizes) for sizes, family in self.seen if family != band]
            below = [value for value in outside if value < min(inside)]
            if below and not any(min(inside) <= value <= max(inside) for value in outside):
                others = set(self._families.values()) - {band}
                begin = self._close_in(expr, (max(below), min(inside)), others, {band})
                if begin is not None:
                    return Compare(">=", expr, Number(begin))
        return None

    def _numbers(self, expr: Expr) -> list[int]:
        """The numbers that suspects were made of: those of which there is twice as much, too."""
        values = {evaluate(expr, sizes) for sizes in self._suspects}
        return sorted(value for value in values if value > _MODULI[-1] and 2 * value in values)

    def _is_apart(self, expr: Expr, value: int) -> bool:
        inside, outside = self._families_of(expr, value.__eq__)
        return bool(inside and outside) and not inside & outside

    def _look_around(self, expr: Expr, value: int) -> None:
        """Trace at this value with the other dims at other sizes: they, too, may have been at a size of their own. And at
        as much more as a number of the user's code: what shows at 5 may be there wherever `n % 37 == 5`."""
        if not isinstance(expr, Ref):
            return
        further = [{**self.seen[0][0], expr.name: value + number} for number in self._numbers(expr)]
        self.look_where_it_answers([*({**sizes, expr.name: value} for sizes, _ in self.seen[:_AROUND]), *further])

    def look_where_it_answers(self, points: Sequence[Sizes]) -> None:
        for sizes in points:
            if self._declared.domain.contains(sizes) and self._answers(sizes):
                self.look(sizes)

    def remainder(self, expr: Expr) -> Condition | None:
        """`expr % k == r`, where what is done at these sizes is never done at others."""
        for modulus in dict.fromkeys((*_MODULI, *self._numbers(expr))):
            for rest in range(modulus):
                inside, outside = self._families_of(expr % modulus, rest.__eq__)
                if inside and outside and not inside & outside:
                    return Compare("==", expr % modulus, Number(rest))
        return None


def _expressions(domain: Domain) -> list[Expr]:
    """What people compare: a size, the difference, the sum and the product of two."""
    names = [Ref(name) for name in domain.names]
    pairs = list(combinations(names, 2))
    made = [each for one, other in pairs for each in (one + other, one * other)]
    return [*names, *(one - other for one, other in pairs), *made]


Capture = Callable[[Declared], Captured]
FindSide = Callable[[Declared], Condition | None]


def capture_sides(declared: Declared, capture: Capture, find_side: FindSide, depth: int) -> Captured:
    """Call `capture`; if it refuses, split the domain by the condition of `find_side`, `depth` times at most."""
    try:
        return capture(declared)
    except NotCaptured as refusal:
        side = _side(refusal, declared, find_side) if depth else None
        deeper = partial(capture_sides, capture=capture, find_side=find_side, depth=depth - 1)
        both = capture_both(declared, side, deeper, deeper) if side is not None else None
        if both is None:
            raise
        return both


def capture_both(declared: Declared, side: Condition, inside: Capture, outside: Capture) -> Captured | None:
    """The sizes at which a condition holds and all others, each captured by itself; None where the outputs differ in number."""
    first, second = _capture_under(side, declared, inside), _capture_under(negate(side), declared, outside)
    if len(first.outputs) != len(second.outputs):
        return None
    outputs = tuple(_either(one, other) for one, other in zip(first.outputs, second.outputs, strict=True))
    return replace(first, regions=(*first.regions, *second.regions), outputs=outputs)


def _side(refusal: NotCaptured, declared: Declared, find_side: FindSide) -> Condition | None:
    """Where to cut: where the traces begin to differ, or where a number without a rule jumps."""
    if refusal.finding.reason is Reason.PATH_DEPENDS_ON_SIZES:
        return find_side(declared)
    found = find_break(refusal.seen, declared.domain.names)
    return found if found is not None and cuts(declared, found) else None


def cuts(declared: Declared, condition: Condition) -> bool:
    """Whether the domain has sizes on both sides."""
    try:
        return all(find_point(declared.domain, side) is not None for side in (condition, negate(condition)))
    except Undecided:
        return False


def _capture_under(condition: Condition, declared: Declared, capture: Capture) -> Captured:
    """A capture for the sizes at which the condition holds."""
    captured = capture(replace(declared, domain=declared.domain.narrowed(condition)))
    regions = tuple(replace(region, condition=all_of((condition, region.condition))) for region in captured.regions)
    return replace(captured, regions=regions)


def _either(one: OutputTensor, other: OutputTensor) -> OutputTensor:
    """An output of both sides: an axis on which they disagree follows no expression."""
    if len(one.axes) != len(other.axes):
        return replace(one, axes=(), any_rank=True)
    axes = tuple(size if size == also else None for size, also in zip(one.axes, other.axes, strict=True))
    return replace(one, axes=axes, any_rank=one.any_rank or other.any_rank)


Paths = Mapping[str, Mapping[int, Hashable]]
"""The way of the code, by the sizes of a dim, the other dims as in the example."""


def split_by_paths(paths: Paths, domain: Domain, example: Mapping[str, int]) -> Condition | None:
    """Where the code goes the way that is rarest in the domain; None where it goes one way, or too many."""
    for name, ways in paths.items():
        inside = {size: way for size, way in ways.items() if domain.contains({**example, name: size})}
        counts = {way: list(inside.values()).count(way) for way in dict.fromkeys(inside.values())}
        rarest = min(counts, key=lambda way: counts[way], default=None)
        chosen = {size for size, way in inside.items() if way == rarest}
        found = _describe(name, sorted(inside), chosen) if 1 < len(counts) <= _MOST_WAYS else None
        if found is not None:
            return found
    return None


def _describe(name: str, sizes: Sequence[int], chosen: Collection[int]) -> Condition | None:
    """A condition that holds at the chosen ones of these sizes, and at no other of them."""
    size = Ref(name)
    for modulus in _MODULI_OF_WAYS:
        rests = {each % modulus for each in chosen}
        if len(chosen) >= _FEWEST_REPEATS and len(rests) == 1:
            (rest,) = rests
            if all(each in chosen for each in sizes if each % modulus == rest):
                return Compare("==", size % modulus, Number(rest))
    runs = _runs(sizes, chosen)
    if len(runs) > _MOST_RUNS:
        return None
    return any_of(all_of(_ends(size, low, high, sizes)) for low, high in runs)


def _runs(sizes: Sequence[int], chosen: Collection[int]) -> list[tuple[int, int]]:
    """The first and the last of the chosen sizes that lie side by side."""
    groups = [(is_chosen, list(run)) for is_chosen, run in groupby(sizes, key=lambda each: each in chosen)]
    return [(run[0], run[-1]) for is_chosen, run in groups if is_chosen]


def _ends(size: Ref, low: int, high: int, sizes: Sequence[int]) -> list[Condition]:
    if low == high:
        return [Compare("==", size, Number(low))]
    ends = ((">=", low, sizes[0]), ("<=", high, sizes[-1]))
    return [Compare(sign, size, Number(end)) for sign, end, last in ends if end != last]
