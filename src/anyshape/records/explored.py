"""What trying the module gives: where it answers, the rules that describe it, repeated calls, and how far comparisons go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyshape.domain import Condition, Domain, dims_of
from anyshape.findings import Source
from anyshape.modules.raised_errors import HeldTensor, Layer
from anyshape.modules.slots import Slot
from anyshape.records.contract import Rule
from anyshape.records.verdict import Refusal, Untried

_CHEAP = 600


@dataclass(frozen=True)
class End:
    """The largest size of one dim that is compared. `declared` is the user's own end, None for a dim without one.

    `why` is the limit that stops it, "" where the declared end itself is compared. `is_memory` is True where that limit
    is the memory bound, which `thorough` does not lift. `farther` is a larger end of a dim without one, which would be
    compared if it were declared; None where there is none.
    """

    name: str
    largest: int
    declared: int | None
    why: str = ""
    is_memory: bool = False
    farther: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the user declared no upper end."""
        return self.declared is None

    @property
    def is_short(self) -> bool:
        """Whether the declared end is not compared."""
        return self.declared is not None and self.largest < self.declared


@dataclass(frozen=True)
class Extent:
    """The domain as far as it is compared, where nothing is proved.

    `points` are to be compared once each: every dim at its end with the others small, then the joint corner.
    `left_out` are the sizes beyond.
    """

    domain: Domain
    ends: tuple[End, ...]
    points: tuple[Mapping[str, int], ...] = field(hash=False)
    left_out: tuple[Untried, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def largest(self) -> dict[str, int]:
        """The largest compared size of each dim."""
        return {end.name: end.largest for end in self.ends}


@dataclass(frozen=True)
class Misfit:
    """A tensor that the module holds, and a refusal at which it does not fit."""

    held: HeldTensor
    refusal: Refusal


@dataclass(frozen=True)
class Lesson:
    """Sizes that the module refused although the rules admit them; `rule` excludes them, where a capture has shown it."""

    sizes: Mapping[str, int] = field(hash=False)
    rule: Condition | None = None


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The sizes at which the module answered and refused, and the rules that separate them.

    `corners` are answered points at the dims' upper ends, `pinned` dims that answer at one size only. `is_explained` is
    False when no rule separates the refused sizes from the answered ones. `left_out` are far points that take too much
    work to be tried. `by_value` is a refusal that is due to the values of the inputs: with smaller ones the module answers
    at those very sizes. `made_value` is such a value of the user's own function, with those that the module takes.
    `layers` are those whose weights fix the size of a pinned dim. The domain is not held here: it is that of the
    declaration.
    """

    rules: tuple[Rule, ...]
    answered: tuple[Mapping[str, int], ...]
    corners: tuple[Mapping[str, int], ...]
    refused: tuple[Refusal, ...]
    pinned: Mapping[str, int] = field(hash=False)
    is_explained: bool
    by_value: Refusal | None = None
    made_value: RefusedValue | None = None
    misfit: Misfit | None = None
    layers: Mapping[str, Layer] = field(default_factory=dict, hash=False)
    left_out: tuple[Untried, ...] = ()

    @property
    def ends(self) -> tuple[Mapping[str, int], ...]:
        """For each dim that a rule bounds, the answered point at which it is largest."""
        bounded = dict.fromkeys(name for rule in self.rules for name in dims_of(rule.condition))
        largest = [max(self.answered, key=lambda sizes: sizes[name]) for name in bounded if self.answered]
        return tuple({tuple(sizes.items()): sizes for sizes in largest}.values())

    def refusal_beside(self, name: str) -> Refusal:
        """The smallest refusal at another size of a pinned dim that is of the kind of the refusal nearest to its one size.

        A refusal at a much smaller size may have another cause: a kernel that is larger than its input.
        """
        size = self.pinned[name]
        others = [refusal for refusal in self.refused if refusal.sizes[name] != size]
        held = {other: fixed for other, fixed in self.pinned.items() if other != name}
        alone = [each for each in others if all(each.sizes[other] == fixed for other, fixed in held.items())] or others
        nearest = min(alone, key=lambda each: (abs(each.sizes[name] - size), sum(each.sizes.values())))
        alike = [each for each in alone if each.kind == nearest.kind]
        return min(alike, key=lambda each: sum(each.sizes.values()))

    def far(self, domain: Domain) -> tuple[Mapping[str, int], ...]:
        """For each dim an answered point where it is at its upper end, or large and still cheap to compare."""
        dims = [dim.name for dim in domain.dims if dim.max is None]
        inside = [
            sizes for sizes in self.answered if domain.contains(sizes) and max(sizes.values(), default=0) <= _CHEAP
        ]
        farthest = [max(inside, key=lambda sizes: sizes[name]) for name in dims if inside]
        points = {tuple(sizes.items()): sizes for sizes in (*farthest, *self.corners)}.values()
        return tuple(sizes for sizes in points if domain.contains(sizes))

    def refused_in(self, domain: Domain) -> tuple[Mapping[str, int], ...]:
        """The refused points that the domain contains, the smallest first."""
        inside = [refusal.sizes for refusal in self.refused if domain.contains(refusal.sizes)]
        return tuple(sorted(inside, key=lambda sizes: sum(sizes.values())))

    def narrow(self, domain: Domain) -> Domain:
        """The part of the domain in which the learned rules hold."""
        return domain.narrowed(*(rule.condition for rule in self.rules))


Place = tuple[str, int]  # the path of an input, and an axis of it


@dataclass(frozen=True)
class LeftOut:
    """The axes that have to follow `dim` so that the module answers at other sizes of it.

    `size` is the example's, at which the axes stay. `tried` are sizes of the dim, the others being the example's: the module
    refuses each of them with the axes as declared, and answers at each with the axes following. `declaration` has the words
    for all dynamic axes by input, with those that were left out.
    """

    dim: str
    places: tuple[Place, ...]
    size: int
    tried: tuple[int, ...]
    declaration: Mapping[str, Mapping[int, str]] = field(hash=False)


@dataclass(frozen=True)
class RefusedValue:
    """`number` in the input `name` at `sizes`; `inputs` are such ones, and `declared` is the text of the declared bounds.

    `taken` has the bounds that the module keeps, as text; "" where no bounds describe all sizes that were tried.
    """

    name: str
    declared: str
    number: float
    sizes: Mapping[str, int] = field(hash=False)
    inputs: Any = field(compare=False)
    taken: str


@dataclass(frozen=True)
class Kept:
    """One value that forward changes and later answers depend on: where it lies, and its value before the first call."""

    slot: Slot
    initial: Any = field(compare=False)
    is_missing: bool = False

    @property
    def path(self) -> str:
        return self.slot.path

    @property
    def name(self) -> str:
        """The path, or that of the list that holds it where the list grows: `history` for `history.3`."""
        grows = self.is_missing and bool(self.slot.steps) and isinstance(self.slot.steps[-1][1], int)
        return self.path.rpartition(".")[0] if grows else self.path


@dataclass(frozen=True, eq=False)
class FirstCall:
    """A call of the module as it was handed over, in eval mode: its inputs, the leaves of its outputs by path, its seconds."""

    inputs: Any
    leaves: tuple[tuple[str, Any], ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """`state` are the values that change answers; `has_memory` may be true without them (an iterator that goes on).

    `written` is the line that writes the state, `sizes` where a later answer was another one. `random` names the sources
    of random numbers that reach the answers, `drawn` the line of the first. `unsteady`: two identical calls from
    the same state and random numbers differ, `differs` at which line. `first_calls` are calls from the module's first state
    that need not be made again: only such of a module that is constant. `is_foreseen`: no call changed the state, which forward
    writes and answers depend on; others would change it.
    """

    has_memory: bool = False
    state: tuple[Kept, ...] = ()
    written: Source | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    random: tuple[str, ...] = ()
    drawn: Source | None = None
    unsteady: bool = False
    differs: Source | None = None
    first_calls: tuple[FirstCall, ...] = ()
    is_foreseen: bool = False
