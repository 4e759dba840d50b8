"""What was perhaps meant: the nearest of some names, by spelling or as a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that is spelt nearly alike, else the only one that has the name in it; None if there is none."""
    alike = get_close_matches(name, candidates, n=1)
    if alike:
        return alike[0]
    holding = [candidate for candidate in candidates if len(name) > 1 and name in candidate]
    return holding[0] if len(holding) == 1 else None


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 axis`, `2 axes`."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
