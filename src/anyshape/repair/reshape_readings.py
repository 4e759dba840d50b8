"""Which sizes the constant target of a Reshape can be: the ways in which the dims of the input go into its axes.

Input and target are cut into the shortest runs of axes with equal numbers of elements, in order. Within a run each factor
of the input that follows a dim goes into one axis of the target that it divides, or, where it divides none, is split.
A dim of size 1 divides everything: it goes to the place that it had between the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from itertools import product as combinations
from math import gcd, prod

from anyshape.domain import Expr, Number, Ref, simplify, substitute
from anyshape.domain.simplify import polynomial_of
from anyshape.repair.known_shapes import Axes, dims_in, is_open, product, size_at

_MOST = 16
_NO_CHANCE = 64


@dataclass
class _Run:
    """Axes of the input, and the places of the target that hold the same elements."""

    sources: list[Expr] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


def find_readings(source: Axes, target: Sequence[int], sizes: Mapping[str, int]) -> list[Axes]:
    """The readings of a target, the most natural first; none where no reading keeps the number of elements."""
    if not any(map(is_open, source)):
        return [tuple(Number(size) for size in target)]
    if 0 in target:
        return []
    found: dict[Axes, None] = {}
    for runs in _runs(source, target, sizes):
        for axes in islice(_of_runs(runs, target, sizes), _MOST):
            found.setdefault(axes)
    canonical = list(found)
    for axes in canonical[:1]:
        found.update(dict.fromkeys(_swapped(axes, sizes)))
    return list(found)[:_MOST]


def _runs(source: Axes, target: Sequence[int], sizes: Mapping[str, int]) -> Iterator[list[_Run]]:
    """Source and target cut into runs, once for each place that open axes of size 1 can have."""
    wide = [axis for axis in source if size_at(axis, sizes) != 1]
    runs, bounds = _cut([size_at(axis, sizes) for axis in wide], target)
    if runs is None:
        return
    ones = [(index, axis) for index, axis in enumerate(source) if is_open(axis) and size_at(axis, sizes) == 1]
    before = [sum(1 for each in source[:index] if size_at(each, sizes) != 1) for index, _ in ones]
    free = [place for place, size in enumerate(target) if size == 1]
    hosts = [list(_hosts(count, runs, bounds, free, target)) for count in before]
    options = islice(combinations(*hosts), 4 * _MOST)
    ordered = [
        chosen
        for chosen in options
        if len({each for each in chosen if each[0] == "place"}) == len([each for each in chosen if each[0] == "place"])
    ]
    for chosen in sorted(
        ordered, key=lambda each: [place for kind, place in each] != sorted(place for kind, place in each)
    ):
        made = [_Run([wide[index] for index in run], list(places)) for run, places in runs]
        for (_, axis), (kind, place) in zip(ones, chosen, strict=True):
            if kind == "run":
                made[place].sources.append(axis)
            else:
                made.append(_Run([axis], [place]))
        taken = {place for kind, place in chosen if kind == "place"}
        _widen(made[: len(runs)], [place for place in free if place not in taken], sizes)
        yield made


def _widen(runs: Sequence[_Run], free: Sequence[int], sizes: Mapping[str, int]) -> None:
    """A run that has a factor of size 1 inside may also go to the ones beside it in the target."""
    left = list(free)
    ends = [-1, *(run.places[-1] for run in runs)]
    begins = [*(run.places[0] for run in runs[1:]), _behind(free, runs)]
    for run, end, begin in zip(runs, ends, begins, strict=False):
        factors = [factor for source in run.sources for factor in _factors(source)]
        if any(size_at(factor, sizes) == 1 for factor in factors):
            beside = [place for place in left if end < place < begin]
            left = [place for place in left if place not in beside]
            run.places[:] = sorted([*beside, *run.places])


def _behind(free: Sequence[int], runs: Sequence[_Run]) -> int:
    """A place behind all others."""
    return 1 + max((*free, *(place for run in runs for place in run.places)), default=0)


_Runs = list[tuple[list[int], list[int]]]


def _cut(source: Sequence[int], target: Sequence[int]) -> tuple[_Runs | None, list[int]]:
    """The shortest runs of equal products; None where the products differ. Also the sources before each run's end."""
    places = [place for place, size in enumerate(target) if size != 1]
    runs: _Runs = []
    bounds: list[int] = []
    left, right = 0, 0
    while left < len(source) or right < len(places):
        one, two, begins = 1, 1, (left, right)
        while one != two or (left, right) == begins:
            if one <= two and left < len(source):
                one, left = one * source[left], left + 1
            elif one >= two and right < len(places):
                two, right = two * target[places[right]], right + 1
            else:
                return None, []
        runs.append((list(range(begins[0], left)), places[begins[1] : right]))
        bounds.append(left)
    return runs, bounds


def _hosts(
    before: int, runs: _Runs, bounds: Sequence[int], free: Sequence[int], target: Sequence[int]
) -> Iterator[tuple[str, int]]:
    """Where an open axis of size 1 can go that has so many wide axes before it: a 1 of the target, or a run."""
    after = [index for index, bound in enumerate(bounds) if bound > before]
    is_between = before == 0 or before in bounds
    if is_between:
        first = 1 + max(
            (place for index, (_, places) in enumerate(runs) if bounds[index] <= before for place in places), default=-1
        )
        last = min((place for index in after for place in runs[index][1]), default=len(target))
        yield from (("place", place) for place in free if first <= place < last)
    ending = [index for index in range(len(runs)) if bounds[index] == before] if is_between else []
    is_split = bool(after) and len(runs[after[0]][0]) < len(runs[after[0]][1])
    around = (
        [*after[:1], *ending] if is_split else [*ending, *after[:1]]
    )  # heads are split from features beside a batch
    yield from (("run", index) for index in around)
    yield from (("place", place) for place in free)


def _of_runs(runs: Sequence[_Run], target: Sequence[int], sizes: Mapping[str, int]) -> Iterator[Axes]:
    """Every combination of the readings of the runs."""
    each = [list(islice(_of_run(run, [target[place] for place in run.places], sizes), _MOST)) for run in runs]
    for chosen in combinations(*each):
        axes: list[Expr] = [Number(size) for size in target]
        for run, exprs in zip(runs, chosen, strict=True):
            for place, expr in zip(run.places, exprs, strict=True):
                axes[place] = expr
        yield tuple(axes)


def _of_run(run: _Run, target: Sequence[int], sizes: Mapping[str, int]) -> Iterator[Axes]:
    whole = product(run.sources)
    if not is_open(whole):
        yield tuple(Number(size) for size in target)
    elif len(target) == 1:
        yield (whole,)
    else:
        factors = [factor for source in run.sources for factor in _factors(source)]
        assigned = list(_assigned(factors, target, sizes))
        yield from assigned
        if not any(_is_clean(axes, target) and not _is_moved_back(run.sources, axes) for axes in assigned):
            yield from _split(whole, target)


def _is_clean(axes: Axes, target: Sequence[int]) -> bool:
    """Whether each axis is a number, a product of sizes alone, or too large to be a number that has the sizes by chance."""
    return all(
        not is_open(axis) or size >= _NO_CHANCE or max(map(abs, polynomial_of(axis).terms.values())) == 1
        for axis, size in zip(axes, target, strict=True)
    )


def _is_moved_back(sources: Sequence[Expr], axes: Axes) -> bool:
    """Whether a dim has more fixed elements before it than in the input, as `seq` in (seq, 6) -> (3, 2, seq).

    A Reshape that splits and joins axes never does that: such a reading may fit by chance, so that others are asked about.
    """
    behind = _numbers_before(axes, with_own=False)
    before = _numbers_before(sources, with_own=True)
    return any(numbers > before.get(name, numbers) for name, numbers in behind.items())


def _numbers_before(axes: Sequence[Expr], *, with_own: bool) -> dict[str, int]:
    """For each dim, the product of the fixed numbers in the axes before its first one, and in its own."""
    found: dict[str, int] = {}
    numbers = 1
    for axis in axes:
        terms = polynomial_of(axis).terms
        own = gcd(*terms.values()) if terms else 1
        for name in dims_in((axis,)):
            found.setdefault(name, numbers * own if with_own else numbers)
        numbers *= max(own, 1)
    return found


def _factors(expr: Expr) -> list[Expr]:
    """The factors that follow dims: `10*batch` gives `batch`, `2*h + 2` gives `h + 1`."""
    poly = polynomial_of(expr)
    if len(poly.terms) == 1:
        (monomial,) = poly.terms
        return list(monomial)
    if poly.as_constant() is not None:
        return []
    return [poly.scaled_down(gcd(*poly.terms.values())).to_expr()]


def _assigned(factors: Sequence[Expr], target: Sequence[int], sizes: Mapping[str, int]) -> Iterator[Axes]:
    """Each factor in one axis of the target, in the order of the input first; what is left of an axis is a number."""
    values = [size_at(factor, sizes) for factor in factors]
    places = combinations(range(len(target)), repeat=len(factors))
    for hosts in sorted(islice(places, 4096), key=lambda each: list(each) != sorted(each)):
        held = [
            prod(value for value, host in zip(values, hosts, strict=True) if host == place)
            for place in range(len(target))
        ]
        if all(size % inside == 0 for size, inside in zip(target, held, strict=True)):
            yield tuple(
                product(
                    [
                        Number(size // inside),
                        *(factor for factor, host in zip(factors, hosts, strict=True) if host == place),
                    ]
                )
                for place, (size, inside) in enumerate(zip(target, held, strict=True))
            )


def _split(whole: Expr, target: Sequence[int]) -> Iterator[Axes]:
    """One axis of the target holds the size divided by the numbers of all others."""
    for place in range(len(target)):
        rest = prod(size for index, size in enumerate(target) if index != place)
        divided = simplify(whole // Number(rest))
        yield tuple(divided if index == place else Number(size) for index, size in enumerate(target))


def _swapped(axes: Axes, sizes: Mapping[str, int]) -> Iterator[Axes]:
    """The axes with dims of equal sizes exchanged: the constants of the file are the same for both."""
    names = sorted(dims_in(axes))
    for one, other in combinations(names, names):
        if one < other and sizes[one] == sizes[other]:
            exchange: dict[str, Expr] = {one: Ref(other), other: Ref(one)}
            yield tuple(simplify(substitute(axis, exchange)) for axis in axes)
