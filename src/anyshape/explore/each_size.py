"""Dims whose sizes the user's code uses as a text, as a key, or otherwise beyond any capture: all of their sizes are compared.

Of a dim that is only divided with a rest (`n % 97`), many sizes are compared in the same way, but no promise ends there.

if f"{n:04d}".startswith("03"):     no comparison of numbers leads to 300 and 399, so the file is compared at 1, 2, 3, ...
                                    up to the end of n, or as far as that is affordable: there the promise ends
if f"{h}x{w}" in NAMES:             a text of two dims is compared at all pairs of sizes, unless NAMES is a container whose keys
                                    show the sizes; where the example's own size is out of reach, along each dim alone
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from math import prod
from random import Random
from typing import NamedTuple

from anyshape.domain import Sizes
from anyshape.explore.cost_estimates import Costing
from anyshape.findings import Source
from anyshape.inputs import Declared
from anyshape.modules.look_ups import LookUp
from anyshape.modules.unfollowed_uses import Seen, Watched
from anyshape.modules.user_code import make_source
from anyshape.modules.uses_in_code import Use

_SHARE_OF_OPEN, _SHARE_OF_DECLARED = 32, 2  # one part in so many of all work, for a dim without and with an end
_MOST = 1 << 16
_TOGETHER = 200  # random points at which several such dims vary
_MOST_STARTS = 3  # lines of sizes beside that of the example, of each dim
_EQUAL, _SIDE = 64, 12  # several such dims have equal sizes up to the first, and all combinations up to the second
_MOST_KEYS, _MOST_WAYS, _STEPS = 1024, 4, 6  # keys of containers, ways to sizes that look one up, steps of a way
Watch = Callable[[Sizes], Watched]
_At = tuple[Use, int]  # a use, and the place of the container in it


class Entry(NamedTuple):
    """A look-up that finds something: the sizes of the dims that it depends on, the numbers of the key, and the line."""

    sizes: Sizes
    key: Sequence[int]
    source: Source


class Unfollowed(NamedTuple):
    """The line of such a use of a dim. `is_rest`: there are only rests of divisions.

    `at_keys`: sizes of all dims at which what is looked up is a key of the container, and `entries` what is found there.
    `near`: sizes other than the example's from which a call comes to the use. `joint`: the dims on which a use depends
    together, if no keys show where it does.
    """

    source: Source
    is_rest: bool
    at_keys: tuple[Sizes, ...] = ()
    near: tuple[Sizes, ...] = ()
    joint: frozenset[str] = frozenset()
    entries: tuple[Entry, ...] = ()

    def and_also(self, other: Unfollowed) -> Unfollowed:
        """This use and another one of the same dim, with the line of one that is no rest, if there is one."""
        shown = min(self, other, key=lambda each: each.is_rest)
        points = ((*self.at_keys, *other.at_keys), (*self.near, *other.near))
        at_keys, near = (tuple(each for at, each in enumerate(some) if each not in some[:at]) for some in points)
        entries = (*self.entries, *(each for each in other.entries if each not in self.entries))
        return Unfollowed(shown.source, shown.is_rest, at_keys, near, self.joint | other.joint, entries)


def find_unfollowed(
    declared: Declared, watch: Watch, is_affordable: Callable[[Sizes], bool], start: Sizes | None = None
) -> dict[str, Unfollowed]:
    """The dims on which such a use depends, by calls of the module at a few sizes of each dim around `start` or the example."""
    found: dict[str, Unfollowed] = {}
    moves: dict[str, _Move] = {}
    example = declared.example_sizes
    start = example if start is None else start
    first = watch(start).uses if is_affordable(start) else {}
    for name in declared.domain.names if first else ():
        for value in others_of(start[name]):
            sizes = {**start, name: value}
            if not declared.domain.contains(sizes) or not is_affordable(sizes):
                continue
            seen = watch(sizes).uses
            changed = [use for use, before in first.items() if seen.get(use, before).text != before.text]
            if changed:
                moves[name] = _Move(start[name], value, seen)
                use = min(changed, key=lambda each: (each.is_rest, each.file, each.line, each.column))
                near = () if dict(start) == dict(example) else (start,)
                found[name] = Unfollowed(make_source(use.file, use.line, use.function), use.is_rest, near=near)
                break
    looking = _Looking(declared, watch, is_affordable, start, first, moves)
    at_keys, joint = list(looking.at_keys()), looking.joint()
    points, entries = tuple(sizes for sizes, _ in at_keys), tuple(entry for _, entry in at_keys if entry.sizes)
    return {name: each._replace(at_keys=points, joint=joint, entries=entries) for name, each in found.items()}


class _Move(NamedTuple):
    """The example's size of a dim, another one, and what uses worked with there."""

    before: int
    after: int
    seen: Mapping[Use, Seen]


@dataclass(frozen=True)
class _Looking:
    """Search for sizes at which a use looks up a key that is there. `first`: what uses worked with at `start`."""

    declared: Declared
    watch: Watch
    is_affordable: Callable[[Sizes], bool]
    start: Sizes
    first: Mapping[Use, Seen]
    moves: Mapping[str, _Move]

    def at_keys(self) -> Iterator[tuple[Sizes, Entry]]:
        """Sizes for each key, and what is found there.

        They are searched from the start and from the smallest sizes, by each dim that changes a number of the key.

        Look-ups by several dims come first: along one dim, each size is compared anyway.
        """
        smallest = {dim.name: dim.smallest for dim in self.declared.domain.dims}
        looked_up: list[tuple[_At, LookUp]] = [
            ((use, place), look_up) for use, seen in self.first.items() for place, look_up in seen.look_ups.items()
        ]
        looked_up.sort(key=lambda each: -len(self._dims(*each)))
        keys = ((at, key) for at, look_up in looked_up for key in sorted(look_up.keys))
        for at, key in islice(keys, _MOST_KEYS):
            for start in (self.start, smallest):
                for movers in islice(product(*(self._movers(at, place) for place in range(len(key)))), _MOST_WAYS):
                    sizes = self._find(at, key, start, movers) if any(movers) else None
                    if sizes is not None:
                        of = {name: sizes[name] for name in movers if name is not None}
                        yield sizes, Entry(of, key, make_source(at[0].file, at[0].line, at[0].function))

    def joint(self) -> frozenset[str]:
        """The dims of uses that several dims decide together: texts, look-ups and numbers that Python reads from tensors.

        A look-up whose keys have a number for each of its dims decides nothing elsewhere.
        """
        found: set[str] = set()
        for use, seen in self.first.items():
            of = {name for name, move in self.moves.items() if move.seen.get(use, seen).text != seen.text}
            look_ups = [((use, place), look_up) for place, look_up in seen.look_ups.items()]
            is_text = "'" in seen.text or use.column < 0
            is_joint = is_text or any(len(self._dims(*each)) > 1 for each in look_ups)
            if len(of) > 1 and is_joint and not use.is_rest and not any(self._shows(*each, of) for each in look_ups):
                found |= of
        return frozenset(found)

    def _shows(self, at: _At, look_up: LookUp, of: set[str]) -> bool:
        """Whether each number of what is looked up follows one dim, and all of these are among them."""
        movers = [self._movers(at, number) for number in range(len(look_up.item))]
        return all(len(each) == 1 for each in movers) and {each[0] for each in movers} >= of

    def _dims(self, at: _At, look_up: LookUp) -> set[str]:
        """The dims that change what is looked up."""
        return {name for place in range(len(look_up.item)) for name in self._movers(at, place) if name is not None}

    def _movers(self, at: _At, place: int) -> list[str | None]:
        """The dims that change this number of what is looked up."""
        found = [name for name in self.moves if self._change(at, place, name)]
        return [*found] if found else [None]

    def _change(self, at: _At, place: int, name: str) -> int:
        after = _item(self.moves[name].seen, at)
        return after[place] - _item(self.first, at)[place] if place < len(after) else 0

    def _find(self, at: _At, key: Sequence[int], sizes: Sizes, movers: Sequence[str | None]) -> Sizes | None:
        """Sizes at which this key is looked up, by secants from the given ones; None where none are found."""
        rates = [
            (self.moves[name].after - self.moves[name].before) / self._change(at, place, name) if name else 0.0
            for place, name in enumerate(movers)
        ]
        start, item = sizes, self._look(at, sizes)
        for _ in range(_STEPS):
            if len(item) < len(key):  # a container that holds the item alone, such as a cache, is not looked into there
                return sizes if sizes is not start and self._may_look(sizes) else None
            if tuple(item[: len(key)]) == tuple(key):
                return sizes
            nearer = dict(sizes)
            for name, number, now, rate in zip(movers, key, item, rates, strict=False):
                if name is not None and number != now:
                    nearer[name] = max(0, sizes[name] + (round((number - now) * rate) or (1 if number > now else -1)))
            there = self._look(at, nearer)
            for place, (name, now, then) in enumerate(zip(movers, item, there, strict=False)):
                if name is not None and then != now and nearer[name] != sizes[name]:
                    rates[place] = (nearer[name] - sizes[name]) / (then - now)
            sizes, item = nearer, there
        return None

    def _look(self, at: _At, sizes: Sizes) -> Sequence[int]:
        """The numbers that are looked up at these sizes; none where the module may not be called."""
        if not self._may_look(sizes):
            return ()
        return _item(self.watch(sizes).uses, at)

    def _may_look(self, sizes: Sizes) -> bool:
        return self.declared.domain.contains(sizes) and self.is_affordable(sizes)


def _item(seen: Mapping[Use, Seen], at: _At) -> Sequence[int]:
    """The numbers in what a use looks up; none where it does not."""
    use, place = at
    look_up = seen[use].look_ups.get(place) if use in seen else None
    return () if look_up is None else look_up.item


def others_of(size: int) -> tuple[int, ...]:
    """Sizes of a dim beside this one, the farthest first."""
    return (2 * size + 1, size + 1, size - 1)


@dataclass(frozen=True)
class EachSize:
    """Limits of comparisons: those of `cost`, and that each size of a dim in `unfollowed` is compared up to its end."""

    declared: Declared
    cost: Costing
    unfollowed: Mapping[str, Unfollowed]
    ends: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        ends = {name: self._find_end(name) for name in self.unfollowed}
        object.__setattr__(self, "ends", {**ends, **self._find_box()})

    @property
    def joint(self) -> list[str]:
        """The dims whose sizes are compared in all combinations, where that is affordable."""
        together = {name for use in self.unfollowed.values() for name in use.joint}
        return [name for name in self.declared.domain.names if name in together]

    def excess(self, sizes: Sizes) -> str:
        """Which limits a comparison at these sizes exceeds, in words; "" if none."""
        beyond = [name for name, end in self.ends.items() if sizes[name] > end and not self.unfollowed[name].is_rest]
        if not beyond:
            return self.cost.excess(sizes)
        line = self.unfollowed[beyond[0]].source
        return f"each size of {beyond[0]} is compared, since no rule follows how it is used at {line}"

    def points(self, largest: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The sizes to compare, up to these ends of the dims."""
        for name, end in self.ends.items():
            for value in self.values(name, min(end, largest.get(name, end))):
                yield {**self.declared.example_sizes, name: value}
            for start in self._starts_beside(name):
                sizes = ({**start, name: value} for value in self.values(name, min(end, largest.get(name, end))))
                yield from (each for each in sizes if not self.cost.excess(each))
        if len(self.ends) > 1:
            yield from self._together({name: min(end, largest.get(name, end)) for name, end in self.ends.items()})
        for use in self.unfollowed.values():
            yield from map(dict, use.at_keys)

    def _together(self, ends: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Points at which several dims vary: all small ones of two dims, equal sizes, and random ones."""
        example, random = self.declared.example_sizes, Random(0)
        box = self._find_box()
        for sizes in product(*(self.values(name, min(end, ends[name])) for name, end in box.items())) if box else ():
            yield {**example, **dict(zip(box, sizes, strict=True))}
        for one, other in combinations(ends, 2):
            sides = (self.values(name, min(_SIDE, ends[name])) for name in (one, other))
            yield from ({**example, one: first, other: second} for first, second in product(*sides))
        yield from ({**example, **dict.fromkeys(ends, size)} for size in range(1, min(_EQUAL, *ends.values()) + 1))
        for _ in range(_TOGETHER):
            yield {**example, **{name: random.randint(1, end) for name, end in ends.items()}}

    def _starts_beside(self, name: str) -> list[Sizes]:
        """Sizes near which the dim is used, unlike the example in another dim."""
        example = self.declared.example_sizes
        lines: dict[tuple[int, ...], Sizes] = {}
        for start in self.unfollowed[name].near:
            others = tuple(start[each] for each in example if each != name)
            if others != tuple(example[each] for each in example if each != name):
                lines.setdefault(others, start)
        return list(lines.values())[:_MOST_STARTS]

    def values(self, name: str, end: int) -> range:
        """The sizes of a dim up to an end."""
        dim = self.declared.domain.dim(name)
        return range(dim.smallest, end + 1, dim.multiple)

    def _find_box(self) -> Mapping[str, int]:
        """Ends of the dims in `joint` up to which all combinations are affordable; none where the example's are not.

        All ends grow in the same proportion from the example's, by eighths, up to those that are declared.
        """
        domain, example, joint = self.declared.domain, self.declared.example_sizes, self.joint
        most = {name: domain.dim(name).max or _MOST for name in joint}
        is_open = any(domain.dim(name).max is None for name in joint)
        work = self.cost.all_work // (_SHARE_OF_OPEN if is_open else _SHARE_OF_DECLARED)
        ends = {name: example[name] for name in joint}
        found: Mapping[str, int] = {}
        while joint:
            corner = {**example, **ends}
            count = prod(len(self.values(name, end)) for name, end in ends.items())
            if count > _MOST or self.cost.excess(corner) or count * self.cost(corner) > work:
                break
            found = ends
            ends = {name: min(most[name], end + max(1, end // 8)) for name, end in ends.items()}
            if ends == found:
                break
        return found

    def _find_end(self, name: str) -> int:
        """The last size such that all up to it together are affordable; the example's at the least."""
        example = self.declared.example_sizes
        written = self.declared.domain.dim(name).max
        is_little = written is None or self.unfollowed[name].is_rest
        left = self.cost.all_work // (_SHARE_OF_OPEN if is_little else _SHARE_OF_DECLARED)
        values = self.values(name, _MOST if written is None else written)
        end = example[name]
        for value in values:
            sizes = {**example, name: value}
            left -= self.cost(sizes)
            if left < 0 or self.cost.excess(sizes):
                break
            end = max(end, value)
        return end
