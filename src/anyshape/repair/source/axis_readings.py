"""What a number of the example's size can be at other sizes: texts over the sizes that can be read at a statement.

    x.view(3, 10)          3 is x.shape[0]
    x.reshape(-1, 100)     100 is 20 * x.shape[1]
    torch.arange(6)        6 is x.shape[1] + 1

Two texts that have the same value in each call that was followed are one reading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from anyshape.repair.source.source_sites import Site, Statement
from anyshape.repair.source.source_tables import Definition, inlined_texts, table_texts
from anyshape.repair.source.traced_calls import Followed

_MOST_COMBINED = 48

Vector = tuple[int | None, ...]


@dataclass(frozen=True)
class Reading:
    """A text in place of a site, and the calls in which it has another value than the site.

    `follows` are the values of the sizes in it, one vector for each. `is_exact`: each number is a size as it is, not an
    expression of sizes. `is_guess`: nothing forces it.
    """

    text: str
    changes_at: frozenset[int]
    follows: tuple[Vector, ...] = ()
    is_exact: bool = True
    is_guess: bool = False


@dataclass(frozen=True)
class Size:
    """A size that can be read at a statement: its text, and its value in each call; None where a call did not come there."""

    text: str
    vector: Vector
    is_exact: bool = True

    @property
    def own(self) -> int:
        return self.vector[0] or 0

    @property
    def changes_at(self) -> frozenset[int]:
        return frozenset(index for index, value in enumerate(self.vector) if value not in (None, self.vector[0]))


def sizes_at(statement: Statement, calls: Sequence[Followed]) -> list[Size]:
    """The sizes that every call can read at the statement and that are not always the same, the best text of each first."""
    seen = [call.seen.get(statement) for call in calls]
    if seen[0] is None:
        return []
    found: dict[Vector, Size] = {}
    texts = sorted(seen[0].sizes, key=lambda text: (_name(text) not in statement.reads, "." in text and "]." in text))
    for text in texts:
        if any(each is not None and text not in each.sizes for each in seen):
            continue
        vector = tuple(None if each is None else each.sizes[text] for each in seen)
        size = Size(text, vector)
        if size.changes_at and vector not in found:
            found[vector] = size
    return list(found.values())


def fixed_sizes(statement: Statement, calls: Sequence[Followed]) -> set[int]:
    """The sizes larger than 1 that axes have at the statement in every call: a number of that size may be one of these."""
    seen = [each for call in calls if (each := call.seen.get(statement)) is not None]
    first = seen[0].sizes if seen else {}
    return {size for text, size in first.items() if size > 1 and all(each.sizes.get(text) == size for each in seen)}


def _name(text: str) -> str:
    return text.partition(".")[0].partition("[")[0]


def readings_of(
    site: Site,
    value: Any,
    statement: Statement,
    calls: Sequence[Followed],
    definitions: Mapping[str, Sequence[Definition]],
) -> list[Reading]:
    """All readings of a site other than its value, the simplest first."""
    sizes = sizes_at(statement, calls)
    if isinstance(value, torch.Tensor):
        return list(_of_table(site, value, sizes, definitions))
    if isinstance(value, tuple) and isinstance(value[0], torch.Tensor):
        return list(_of_tables(site, value, sizes, definitions))
    if isinstance(value, tuple):
        is_list = site.text.endswith(("tolist()", "list()"))
        return list(_of_numbers(value, sizes, fixed_sizes(statement, calls), is_list=is_list))
    if isinstance(value, float) and not value.is_integer():
        return []
    found = {each.vector: each for each in read_number(int(value), sizes)}
    fixed = fixed_sizes(statement, calls)
    return [_reading(each, site, is_guess=each.is_exact and each.own in fixed) for each in found.values()]


def read_number(value: int, sizes: Sequence[Size]) -> list[Size]:
    """The sizes and simple expressions of sizes that have this value in the first call."""
    exact = [size for size in sizes if size.own == value]
    return [*exact, *_expressions(value, sizes)]


def _expressions(value: int, sizes: Sequence[Size]) -> Iterator[Size]:
    for size in sizes:
        if 1 < size.own < value and value % size.own == 0:
            yield multiplied(size, value // size.own)
        if size.own > 1 and value - size.own in (1, -1) and value > 1:
            sign = "+" if value > size.own else "-"
            yield _made(f"{size.text} {sign} 1", lambda a, c=value - size.own: a + c, size)
        if value > 1 and size.own > value and size.own % value == 0:
            yield _made(f"{size.text} // {size.own // value}", lambda a, c=size.own // value: a // c, size)
    for index, one in enumerate(sizes):
        for other in sizes[index + 1 :]:
            both = one.own * other.own
            if one.own > 1 and other.own > 1 and value % both == 0:
                times = value // both
                text = f"{one.text} * {other.text}" if times == 1 else f"{times} * {one.text} * {other.text}"
                yield _made(text, lambda a, b, c=times: a * b * c, one, other)
            if one.own + other.own == value:
                yield _made(f"{one.text} + {other.text}", lambda a, b: a + b, one, other)


def multiplied(one: Size, other: Size | int) -> Size:
    """The product of two sizes, or of a number and a size."""
    if isinstance(other, int):
        return _made(f"{other} * {one.text}", lambda a: other * a, one)
    return _made(f"{one.text} * {other.text}", lambda a, b: a * b, one, other)


def _made(text: str, compute: Callable[..., int], *parts: Size) -> Size:
    columns = zip(*(part.vector for part in parts), strict=True)
    return Size(text, tuple(None if None in column else compute(*column) for column in columns), is_exact=False)


def _reading(size: Size, site: Site, *, is_guess: bool) -> Reading:
    needs_brackets = site.is_operand and " " in size.text
    text = f"({size.text})" if needs_brackets else size.text
    return Reading(text, size.changes_at, (size.vector,), is_exact=size.is_exact, is_guess=is_guess)


def _options(values: Sequence[int], sizes: Sequence[Size]) -> Iterator[tuple[Size | None, ...]]:
    """For each value a size or None (the number stays); those with most sizes first, at least one."""
    each = [[*(size for size in sizes if size.own == value), None] for value in values]
    for place, (value, found) in enumerate(zip(values, each, strict=True)):
        if found == [None] and value > 1:
            each[place] = [
                *(size for size in _expressions(value, sizes) if "//" not in size.text and "- 1" not in size.text),
                None,
            ]
    combined = [chosen for chosen, _ in zip(product(*each), range(_MOST_COMBINED), strict=False)]
    combined.sort(key=lambda chosen: sum(size is None for size in chosen))
    yield from (chosen for chosen in combined if any(size is not None for size in chosen))


def _of_numbers(
    values: tuple[int, ...], sizes: Sequence[Size], fixed: Collection[int], *, is_list: bool
) -> Iterator[Reading]:
    for chosen in _options(values, sizes):
        texts = [str(value) if size is None else size.text for value, size in zip(values, chosen, strict=True)]
        inside = ", ".join(texts) + ("," if len(texts) == 1 and not is_list else "")
        is_guess = any(size is not None and size.is_exact and size.own in fixed for size in chosen)
        yield _joined(f"[{inside}]" if is_list else f"({inside})", chosen, is_guess=is_guess)


def _of_table(
    site: Site, table: torch.Tensor, sizes: Sequence[Size], definitions: Mapping[str, Sequence[Definition]]
) -> Iterator[Reading]:
    for chosen in _options(tuple(table.shape), sizes):
        axes = {axis: size.text for axis, size in enumerate(chosen) if size is not None}
        own = {size.own: size.text for size in chosen if size is not None}
        is_made = not isinstance(table, torch.nn.Parameter)
        inlined = [_joined(text, chosen) for text in inlined_texts(site.text, definitions, own)] if is_made else []
        patterns = [_joined(text, chosen, is_guess=True) for text in table_texts(site.text, table, axes)]
        yield from (*inlined, *patterns)


def _of_tables(
    site: Site, tables: tuple[torch.Tensor, ...], sizes: Sequence[Size], definitions: Mapping[str, Sequence[Definition]]
) -> Iterator[Reading]:
    """Tables of one shape, such as the two states of an LSTM, which follow the same sizes."""
    if any(table.shape != tables[0].shape for table in tables):
        return
    for chosen in _options(tuple(tables[0].shape), sizes):
        axes = {axis: size.text for axis, size in enumerate(chosen) if size is not None}
        own = {size.own: size.text for size in chosen if size is not None}
        inlined = [_joined(text, chosen) for text in inlined_texts(site.text, definitions, own)]
        texts = [next(table_texts(f"{site.text}[{index}]", table, axes), "") for index, table in enumerate(tables)]
        patterns = [_joined(f"({', '.join(texts)})", chosen, is_guess=True)] if all(texts) else []
        yield from (*inlined, *patterns)


def _joined(text: str, chosen: Sequence[Size | None], *, is_guess: bool = False) -> Reading:
    sizes = [size for size in chosen if size is not None]
    changes = frozenset[int]().union(*(size.changes_at for size in sizes))
    is_exact = all(size.is_exact for size in sizes)
    return Reading(text, changes, tuple(size.vector for size in sizes), is_exact=is_exact, is_guess=is_guess)
