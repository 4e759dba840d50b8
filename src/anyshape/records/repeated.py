"""What repeated calls of the module show: state that changes later answers, and random numbers in the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyshape.findings import Source
from anyshape.modules.slots import Slot


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


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """`state` are the values that change answers; `has_memory` may be true without them (an iterator that goes on).

    `written` is the line that writes the state, `sizes` where a later answer was another one. `random` names the sources
    of random numbers that reach the answers, `drawn` the line of the first. `unsteady` says that two identical calls from
    the same state and random numbers differ, `differs` at which line.
    """

    has_memory: bool = False
    state: tuple[Kept, ...] = ()
    written: Source | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    random: tuple[str, ...] = ()
    drawn: Source | None = None
    unsteady: bool = False
    differs: Source | None = None
