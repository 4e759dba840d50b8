"""An axis that the declaration leaves static, and beside which the module refuses other sizes of a dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
