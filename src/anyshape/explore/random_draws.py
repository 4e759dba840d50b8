"""Calls under other random numbers: an answer that differs is random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyshape.domain import Sizes
from anyshape.findings import Source
from anyshape.intercept.replay import Call, Replay, Reply
from anyshape.modules.line_trace import find_difference
from anyshape.records.explored import Repeated

_DRAWS = 8
_MANY_DRAWS = 256  # of a source that is read and not seeded: what is rare must be seen, too


@dataclass(frozen=True, eq=False)
class CallPoint:
    """One call: its sizes, the call itself, and the reply of a fresh module.

    `is_legal`: its integers are the user's; ours, drawn beside an example, may be none that the module defines.
    """

    sizes: Sizes
    call: Call
    fresh: Reply
    is_legal: bool = True


@dataclass(frozen=True)
class Randomness:
    """Calls under other random numbers."""

    replay: Replay

    def observe(self, points: Sequence[CallPoint], rare: Sequence[CallPoint] = ()) -> Repeated:
        """`rare` are calls of rare values that draw numbers: these may have an effect there alone."""
        for point in (*points, *rare):
            if self.replay.ignores_draws(point.call, point.fresh):
                continue
            advanced = self.replay.advanced(point.call)
            draws = {
                source: _MANY_DRAWS if is_open and point in points else _DRAWS for source, is_open in advanced.items()
            }
            seeds = {source: self._seed_that_matters(point, source, count) for source, count in draws.items()}
            found = tuple(source for source, seed in seeds.items() if seed is not None)
            if found:
                drawn = self._line_of_draw(point, found[0], seeds[found[0]] or 0)
                return Repeated(random=found, drawn=drawn, sizes=point.sizes)
        return Repeated()

    def _line_of_draw(self, point: CallPoint, source: str, seed: int) -> Source | None:
        return find_difference(
            lambda: self.replay.fresh(point.call), lambda: self.replay.fresh(point.call, seed, (source,))
        )

    def _seed_that_matters(self, point: CallPoint, source: str, draws: int) -> int | None:
        """A seed under which the answer is another one."""
        for seed in range(1, draws + 1):
            if not self.replay.fresh(point.call, seed, (source,)).is_like(point.fresh):
                return seed
        return None
