"""Keys of the dict, set or list in which the user's code looks up sizes: `GRID.get((h, w))`, `f"{h}x{w}" in names`.

An item and a key are reduced to the numbers in them, so that sizes can be computed at which both are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_MOST_KEYS = 4096
Numbers = tuple[int, ...]


class LookUp(NamedTuple):
    """The numbers in the item that is looked up, and those in each key; a key has at most as many."""

    item: Numbers
    keys: frozenset[Numbers]


def read_look_up(container: Any, others: Sequence[Any]) -> LookUp | None:
    """The look-up of the other values in a container; None where it is no container, or none of its keys has numbers."""
    if not isinstance(container, (dict, set, frozenset, list, tuple)) or len(container) > _MOST_KEYS:
        return None
    item = tuple(number for value in others for number in _numbers_in(value))
    keys = frozenset(key for key in map(_numbers_in, container) if 0 < len(key) <= len(item))
    return LookUp(item, keys) if keys else None


def _numbers_in(value: Any) -> Numbers:
    """The integers of plain data, from left to right: (3, "x50") has 3 and 50."""
    if isinstance(value, (bool, np.bool_)):
        return ()
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    if isinstance(value, str):
        return tuple(map(int, re.findall(r"\d+", value)))
    if isinstance(value, (tuple, list)):
        return tuple(number for each in value for number in _numbers_in(each))
    return ()
