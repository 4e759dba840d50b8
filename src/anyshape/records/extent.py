"""How far comparisons of one export go: the largest size of each dim, and what lies beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anyshape.domain import Condition, Domain
from anyshape.records.verdict import Untried


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
