"""What is known of sizes, as the cells of a map over two dims, or over one.

Compared sizes are few and far between, so that sizes of about the same magnitude share a cell: 1, 2, 3 to 4, 5 to 8, 9 to 16.
A map of the contract has a cell for single sizes instead: those on both sides of every number in a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from anyshape.domain import Condition, Domain, Number, Sizes, dims_of, holds
from anyshape.domain.condition import All, AnyOf, Compare, Not
from anyshape.records.captured import Region
from anyshape.report.page.page_facts import PageFacts

MOST_PAIRS = 10
_MOST_TICKS = 12
OUTSIDE, INSIDE, NOT_COMPARED = "outside the contract", "inside the contract", "not compared"


@dataclass(frozen=True)
class Pair:
    """Two dims; `y` is "" where there is one alone."""

    x: str
    y: str = ""


@dataclass(frozen=True)
class Cell:
    """One cell: the place on both axes, and a number, or a word where there is none."""

    x: int
    y: int
    value: float | None
    word: str
    text: str = ""


@dataclass(frozen=True)
class CellMap:
    """The cells of a map over a pair of dims, and the labels of both axes in ascending order."""

    pair: Pair
    cells: tuple[Cell, ...]
    x: tuple[str, ...]
    y: tuple[str, ...]


def pairs_of(names: Sequence[str]) -> list[Pair]:
    """Every pair of dims in their order; a single dim is a pair of its own."""
    return [Pair(*pair) for pair in combinations(names, 2)] or [Pair(name) for name in names]


def map_errors(facts: PageFacts, pair: Pair) -> CellMap | None:
    """The worst error of each cell in noise floors; failures and refusals as words. None where nothing was compared."""
    verdict = facts.verdict
    if verdict is None:
        return None
    numbers = [(each.sizes, max(each.errors.values(), default=0.0)) for each in verdict.compared]
    words = [(refusal.sizes, "refused") for refusal in verdict.refused]
    words += [(failure.sizes, "wrong" if failure.difference else "failed") for failure in verdict.failures]
    return map_in_buckets(pair, numbers, words)


def map_figures(facts: PageFacts, pair: Pair, *, memory: bool) -> CellMap | None:
    """Milliseconds of a call, or the MB of its process, where they were measured."""
    rows = () if facts.bench is None else facts.bench.rows
    timed = [(row.sizes, row.timing) for row in rows if row.timing is not None]
    return map_in_buckets(pair, [(sizes, timing.peak_mb if memory else timing.ms) for sizes, timing in timed], [])


def map_in_buckets(
    pair: Pair, numbers: Sequence[tuple[Sizes, float]], words: Sequence[tuple[Sizes, str]]
) -> CellMap | None:
    """The largest number of each cell; where a word is said of one of its sizes, the word. None where there is neither."""
    names = {pair.x, pair.y} - {""}
    numbers = [(sizes, number) for sizes, number in numbers if names <= set(sizes)]
    words = [(sizes, word) for sizes, word in words if names <= set(sizes)]
    places = [_bucket_at(sizes, pair) for sizes, _ in (*numbers, *words)]
    if not places:
        return None
    worst: dict[tuple[int, int], float] = {}
    for sizes, number in numbers:
        key = _bucket_at(sizes, pair)
        worst[key] = max(number, worst.get(key, 0.0))
    said = {_bucket_at(sizes, pair): word for sizes, word in words}
    across, up = (range(min(side), max(side) + 1) for side in zip(*places, strict=True))
    cells = []
    for x in across:
        for y in up:
            if (word := said.get((x, y))) is not None:
                cells.append(Cell(x - across[0], y - up[0], None, word, "✕"))
            elif (x, y) in worst:
                cells.append(Cell(x - across[0], y - up[0], worst[x, y], "compared", f"{worst[x, y]:.2g}"))
            else:
                cells.append(Cell(x - across[0], y - up[0], None, NOT_COMPARED))
    return CellMap(pair, tuple(cells), tuple(map(_bucket_label, across)), tuple(map(_bucket_label, up)))


def _bucket_at(sizes: Mapping[str, int], pair: Pair) -> tuple[int, int]:
    return _bucket(sizes[pair.x]), _bucket(sizes[pair.y]) if pair.y else 0


def _bucket(size: int) -> int:
    """0 for 0, 1 for 1, 2 for 2, 3 for 3 and 4, 4 for 5 to 8, ..."""
    return 0 if size <= 0 else (size - 1).bit_length() + 1


def _bucket_label(bucket: int) -> str:
    low, high = ((1 << (bucket - 2)) + 1, 1 << (bucket - 1)) if bucket > 2 else (bucket, bucket)
    return str(low) if low == high else f"{low}–{high}"


def map_regions(facts: PageFacts, pair: Pair) -> CellMap | None:
    """Which program of the file answers at single sizes, the other dims at their example; None for a plain rectangle."""
    domain = facts.domain
    if domain is None or not any(_shapes(condition, pair) for condition in _conditions(domain, facts.regions)):
        return None
    others = {dim.name: dim.smallest for dim in domain.dims}
    others.update(facts.run.example if facts.run is not None else {})
    across = _ticks(pair.x, domain, facts)
    up = _ticks(pair.y, domain, facts) if pair.y else [0]
    cells = []
    for column, x in enumerate(across):
        for row, y in enumerate(up):
            sizes = {**others, pair.x: x, **({pair.y: y} if pair.y else {})}
            cells.append(Cell(column, row, None, _answering(domain, facts.regions, sizes)))
    return CellMap(pair, tuple(cells), tuple(map(str, across)), tuple(map(str, up)))


def _conditions(domain: Domain, regions: Sequence[Region]) -> list[Condition]:
    return [*domain.relations, *(region.condition for region in regions)]


def _shapes(condition: Condition, pair: Pair) -> bool:
    """Whether a condition is seen in a map over these dims: it is about them alone, or about more dims than a map has."""
    names = set(dims_of(condition))
    return bool(names & {pair.x, pair.y}) and (names <= {pair.x, pair.y} or len(names) > 2)


def _answering(domain: Domain, regions: Sequence[Region], sizes: Sizes) -> str:
    if not domain.contains(sizes):
        return OUTSIDE
    if len(regions) <= 1:
        return INSIDE
    number = next((index for index, region in enumerate(regions) if holds(region.condition, sizes)), len(regions) - 1)
    return f"region {number + 1}"


def _ticks(name: str, domain: Domain, facts: PageFacts) -> list[int]:
    """Sizes of a dim that tell: its ends and beyond, compared ones, and both sides of numbers in conditions about it."""
    dim = domain.dim(name)
    compared = {sizes[name] for sizes in (() if facts.verdict is None else facts.verdict.tried) if name in sizes}
    conditions = [each for each in _conditions(domain, facts.regions) if name in dims_of(each)]
    near = {number + step for each in conditions for number in _numbers(each) for step in (0, 1)}
    ends = {dim.min - 1, dim.min, *([] if dim.max is None else [dim.max, dim.max + 1])}
    telling = {size for size in (*near, *ends) if size >= 0}
    ticks = sorted(telling | compared)
    while len(ticks) > max(_MOST_TICKS, len(telling)):  # leave out sizes that are close to their neighbours
        inner = [place for place in range(1, len(ticks) - 1) if ticks[place] not in telling]
        del ticks[min(inner, key=lambda place: (ticks[place + 1] + 1) / (ticks[place - 1] + 1))]
    return ticks


def _numbers(condition: Condition) -> Iterator[int]:
    """The numbers with which a condition compares."""
    if isinstance(condition, Compare):
        yield from (side.value for side in (condition.left, condition.right) if isinstance(side, Number))
    elif isinstance(condition, (All, AnyOf)):
        for part in condition.parts:
            yield from _numbers(part)
    elif isinstance(condition, Not):
        yield from _numbers(condition.part)
