"""What exploring gives: where the module itself answers, and the rules that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anyshape.domain import Domain
from anyshape.records.contract import Rule
from anyshape.records.verdict import Refusal, Untried

_CHEAP = 600


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The domain on which the module answers, and the rules that were added to the user's own.

    `corners` are answered points at the dims' upper ends, `pinned` dims that answer at one size only. `is_explained` is
    False when no simple rule tells the refused sizes from the answered ones: the domain is then the declared one, and
    must not be promised. `left_out` are far points that take too much work to be tried.
    """

    domain: Domain
    rules: tuple[Rule, ...]
    answered: tuple[Mapping[str, int], ...]
    corners: tuple[Mapping[str, int], ...]
    refused: tuple[Refusal, ...]
    pinned: Mapping[str, int] = field(hash=False)
    is_explained: bool
    left_out: tuple[Untried, ...] = ()

    @property
    def far(self) -> tuple[Mapping[str, int], ...]:
        """For each dim an answered point where it is at its upper end, or large and still cheap to compare."""
        dims = [dim.name for dim in self.domain.dims if dim.max is None]
        inside = [
            sizes for sizes in self.answered if self.domain.contains(sizes) and max(sizes.values(), default=0) <= _CHEAP
        ]
        farthest = [max(inside, key=lambda sizes: sizes[name]) for name in dims if inside]
        return tuple({tuple(sizes.items()): sizes for sizes in (*farthest, *self.corners)}.values())
