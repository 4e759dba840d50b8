"""`anyshape.dim(1, 64, multiple=8)`: what a size may be, written where a function of sizes names it.

It is a default value or an annotation, never a size: a function that computes with it fails at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DimRange:
    """From min to max (None: no upper end), in steps of multiple; `example` is the size of the example."""

    min: int = 1
    max: int | None = None
    multiple: int = 1
    example: int | None = None


# `min` and `max` are what the user reads at the call: dim(min=2, max=64). Any, since it stands in for an int.
def dim(min: int = 1, max: int | None = None, *, multiple: int = 1, example: int | None = None) -> Any:  # noqa: A002
    """The range of a parameter of a function of sizes: `def inputs(batch=anyshape.dim(1, 64)): ...`."""
    return DimRange(min, max, multiple, example)
