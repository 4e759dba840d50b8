"""Repair of a module's source: numbers and tables of one size in the user's lines -> edits that follow the inputs.

This file: search for edits under which a module answers at all probes, and name the numbers left that may be sizes.

An edit is kept if the call comes further with it than without it, and no call that answered raises. The search goes on after
the first set of edits that is enough: a second one with other answers makes the repair ambiguous.

Each is tried as a size; where every call answers, the evidence has to decide.

Files, in the order in which data flows:

    source_patch   the sizes at which the module is called; edits -> new lines, a diff, and findings
    traced_calls   one call, with what each statement saw
    source_sites   expressions in the source that hold numbers
    axis_readings  which size a number can be
    source_tables  a table of one size -> text that makes it at any, where it is used
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import isclose
from typing import Any

import numpy as np
import torch

from anyshape.repair.source.axis_readings import Reading, Size, multiplied, readings_of, sizes_at
from anyshape.repair.source.source_sites import Site, Sources, Statement
from anyshape.repair.source.source_tables import Definition
from anyshape.repair.source.traced_calls import Followed

Array = np.ndarray[Any, Any]
Edits = Mapping[Site, Reading]
_MOST_TOGETHER = 4
_MOST_COMBINED = 48
_MOST_FOUND = 6
_FEWEST = 2
_NOT_SIZES = ("dim", "start_dim", "end_dim", "axis", "p", "eps", "momentum", "num_features", "groups", "bins")


@dataclass(frozen=True)
class Call:
    """A call at one of the sizes. `arrays` is None where it raised `message`."""

    followed: Followed
    arrays: tuple[Array, ...] | None
    message: str = ""


Attempt = Callable[[Edits, Sequence[int]], Sequence[Call] | None]
"""The calls under some edits, at those of the sizes that have these places; None where the edits cannot be made.

Place 0 has the example's sizes, where a refusal is None as well.
"""


@dataclass(frozen=True)
class Found:
    """Edits under which every call answers, and these calls."""

    edits: Edits
    calls: Sequence[Call]


@dataclass
class EditSearch:
    """One search. `most` is how many sets of edits are tried; `is_ended`: whether these were too few.

    `with_names`: uses of a local name that is always the same number are edited too, not only what gives it its value.
    """

    sources: Sources
    attempt: Attempt
    original: Sequence[Call]
    is_same: Callable[[Sequence[Array], Sequence[Array]], bool]
    definitions: Mapping[str, Sequence[Definition]] = field(default_factory=dict)
    most: int = 240
    with_names: bool = False
    is_ended: bool = False
    furthest: tuple[str, int] | None = None
    _tried: dict[frozenset[tuple[Site, str]], Sequence[Call] | None] = field(default_factory=dict)
    _count: int = 0

    def find(self) -> list[Found]:
        """Sets of edits with different answers, the simplest first; none that does more than another one has to."""
        found: list[Found] = []
        for each in self._complete({}, self.original):
            if not any(self.is_equal(each, other) for other in found):
                found.append(each)
            if len(found) >= _MOST_FOUND:
                break
        return [each for each in found if not any(_does_more(each, other) for other in found)]

    def is_equal(self, one: Found, other: Found) -> bool:
        """Whether the answers are the same at all sizes."""
        pairs = zip(one.calls, other.calls, strict=True)
        return all(self.is_same(left.arrays or (), right.arrays or ()) for left, right in pairs)

    def calls_under(self, edits: Edits) -> Sequence[Call] | None:
        """The calls under these edits; None where they cannot be made, or change the answer at the example's sizes."""
        key = frozenset((site, reading.text) for site, reading in edits.items())
        if key not in self._tried:
            self._tried[key] = self._attempt(edits, range(len(self.original)))
        return self._tried[key]

    def _attempt(self, edits: Edits, places: Sequence[int]) -> Sequence[Call] | None:
        if self._count >= self.most * len(self.original):
            self.is_ended = True
            return None
        self._count += len(places)
        calls = self.attempt(edits, places)
        if calls is None or calls[0].arrays is None:
            return None
        return calls if self.is_same(self.original[0].arrays or (), calls[0].arrays) else None

    def _complete(self, edits: Edits, calls: Sequence[Call]) -> Iterator[Found]:
        at = next((index for index, call in enumerate(calls) if call.arrays is None), None)
        if at is None:
            yield Found(edits, calls)
            return
        self._note_furthest(calls[at])
        for level in self._levels(calls[at].followed):
            is_found = False
            for further in self._further(level, edits, calls, at):
                for found in self._complete(further, self.calls_under(further) or ()):
                    is_found = True
                    yield found
            if is_found:
                return

    def _note_furthest(self, call: Call) -> None:
        if call.followed.stack:
            self.furthest = call.followed.stack[0]

    def _further(
        self, level: Sequence[Statement], edits: Edits, calls: Sequence[Call], at: int
    ) -> Iterator[dict[Site, Reading]]:
        """Edits with one more site, or with a few where no single one helps, under which the call comes further."""
        options = self._options(level, edits, calls, at)
        exact = {site: [each for each in readings if each.is_exact] for site, readings in options.items()}
        for some in (exact, options):
            singles = [{site: reading} for site, readings in some.items() for reading in readings]
            helpful = [extra for extra in singles if self._helps({**edits, **extra}, calls, at)]
            if not helpful:
                helpful = [extra for extra in _together(some) if self._helps({**edits, **extra}, calls, at)]
            if helpful:
                yield from ({**edits, **extra} for extra in helpful)
                return

    def _options(
        self, level: Sequence[Statement], edits: Edits, calls: Sequence[Call], at: int
    ) -> dict[Site, list[Reading]]:
        followed = [call.followed for call in calls]
        found: dict[Site, list[Reading]] = {}
        for statement in level:
            seen = self.original[0].followed.seen.get(statement)
            for site, value in (seen.values if seen is not None else {}).items():
                if site.number is not None and site.is_compared:  # x.shape[1] == 5 is a condition, and stays
                    continue
                if any(site.overlaps(other) for other in edits) or not self._is_open(site, statement, followed):
                    continue
                every = readings_of(site, value, statement, followed, self.definitions)
                readings = [each for each in every if at in each.changes_at]
                if readings:
                    found[site] = readings
        return found

    def _is_open(self, site: Site, statement: Statement, followed: Sequence[Followed]) -> bool:
        """Whether a site may be edited: a local name only if that is wanted and it is the same number in all calls."""
        seen = [call.seen[statement].sizes for call in followed if statement in call.seen]
        if site.text not in seen[0]:
            return True
        return self.with_names and all(sizes.get(site.text) == seen[0][site.text] for sizes in seen)

    def _helps(self, edits: Edits, before: Sequence[Call], at: int) -> bool:
        quick = self._attempt(edits, (0, at))
        if quick is None or not _is_further(quick[1], before[at]):
            return False
        after = self.calls_under(edits)
        if after is None:
            return False
        return not any(old.arrays is not None and new.arrays is None for old, new in zip(before, after, strict=True))

    def _levels(self, followed: Followed) -> Iterator[list[Statement]]:
        """The statements that ran, nearest to the error first: its line, what that uses and who calls it, and so on."""
        ran = [statement for statement in self.sources.statements if statement in followed.seen]
        known: set[Statement] = set()
        level: list[Statement] = []
        for place in range(len(ran) + len(followed.stack) + 1):
            lines = followed.stack[place : place + 1]
            here = [each for file, line in lines for each in self.sources.at(file, line)]
            near = [each for each in ran if any(_feeds(each, user) for user in level)]
            level = [each for each in dict.fromkeys((*here, *near)) if each not in known]
            if not level and not lines:
                break
            known.update(level)
            if level:
                yield level
        rest = [each for each in ran if each not in known]
        if rest:
            yield rest


def _is_further(after: Call, before: Call) -> bool:
    return after.arrays is not None or after.followed.steps > before.followed.steps


def _does_more(one: Found, other: Found) -> bool:
    """Whether edits have those of another set and more, which are expressions: 8 stays 8, if that is enough."""
    more = one.edits.keys() - other.edits.keys()
    return bool(more) and one.edits.keys() > other.edits.keys() and not any(one.edits[site].is_exact for site in more)


def _feeds(one: Statement, user: Statement) -> bool:
    """Whether a statement may make what another one uses."""
    shared = one.writes & user.reads
    is_seen = one.function == user.function or any("." in text for text in shared)
    return (bool(shared) and is_seen) or one.function[0] in user.calls


def _together(options: Mapping[Site, Sequence[Reading]]) -> Iterator[dict[Site, Reading]]:
    """A few sites at once: all that follow the same size first, then any of them."""
    by_size: dict[Any, dict[Site, Reading]] = {}
    for site, readings in options.items():
        for reading in readings:
            by_size.setdefault(reading.follows, {}).setdefault(site, reading)
    count = 0
    for group in by_size.values():
        if len(group) > 1 and not any(one.overlaps(other) for one, other in combinations(group, 2)):
            yield group
    for number in range(2, _MOST_TOGETHER + 1):
        for sites in combinations(options, number):
            if any(one.overlaps(other) for one, other in combinations(sites, 2)):
                continue
            for readings in product(*(options[site] for site in sites)):
                count += 1
                if count > _MOST_COMBINED:
                    return
                yield dict(zip(sites, readings, strict=True))


def other_readings(edits: Edits, original: Call, calls: Sequence[Call]) -> Iterator[tuple[Site, Reading]]:
    """The sites outside of the edits whose value equals a size, each with that size in its place."""
    followed = [call.followed for call in calls]
    for statement, seen in original.followed.seen.items():
        sizes = _with_products(sizes_at(statement, followed), set(seen.sizes.values()))
        for site, value in seen.values.items():
            is_number = type(value) in (int, float) and site.text not in seen.sizes
            if not is_number or any(site.overlaps(other) for other in edits):
                continue
            for text, size in _like(site, float(value), sizes):
                bracketed = f"({text})" if site.is_operand and " " in text else text
                yield site, Reading(bracketed, size.changes_at, (size.vector,))


def _with_products(sizes: Sequence[Size], widths: Collection[int]) -> list[Size]:
    """The sizes, and their products with each other and with the sizes of other axes: how many elements there may be."""
    known = [size for size in sizes if size.own >= _FEWEST]
    products = [multiplied(one, other) for one, other in combinations(known, 2)]
    products += [multiplied(size, width) for size in known for width in sorted(widths) if width >= _FEWEST]
    return [*known, *products]


def _like(site: Site, value: float, sizes: Sequence[Size]) -> Iterator[tuple[str, Size]]:
    for size in sizes:
        if value == size.own:
            yield size.text, size
        elif value == size.own - 1 and (site.is_index or (value > 1 and (site.is_operand or site.is_compared))):
            yield f"{size.text} - 1", size
        elif not value.is_integer():
            one = f"({size.text})" if " " in size.text else size.text
            for text, number in (
                (f"1 / {one}", 1 / size.own),
                (f"{one} ** 0.5", size.own**0.5),
                (f"{one} ** -0.5", size.own**-0.5),
            ):
                if isclose(value, number, rel_tol=1e-6):
                    yield text, size


def layer_numbers(module: torch.nn.Module, size: int) -> list[str]:
    """Layers of torch without weights whose number is this size, `up.size=5`: what they do at other sizes is not known."""
    found = []
    for name, part in module.named_modules():
        if not type(part).__module__.startswith("torch.nn") or next(part.parameters(), None) is not None:
            continue
        for attribute, value in vars(part).items():
            values = value if isinstance(value, (tuple, list)) else (value,)
            is_like = any(type(each) is int and each == size for each in values)
            if is_like and not attribute.startswith("_") and attribute not in _NOT_SIZES:
                found.append(f"{name}.{attribute}={value}")
    return found
