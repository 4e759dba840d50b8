"""Other values for a parameter or a number that varies freely: few, small, and on both sides of what branches ask.

The first is always the one given. A value that is neither a number nor a bool has no others.
"""

from __future__ import annotations

from typing import Any

from anyshape.domain import Dim

_SMALL = (1, 2, 3, 5, 7)


def choices_of(value: Any, dim: Dim | None = None) -> tuple[Any, ...]:
    """The value, then others of its kind; ints stay within the range of the dim, if there is one."""
    if isinstance(value, bool):
        return (value, not value)
    if type(value) is int:
        others = [size for size in (*_SMALL, value + 1) if dim is None or dim.contains(size)]
        return tuple(dict.fromkeys((value, *others)))
    if type(value) is float:
        return tuple(dict.fromkeys((value, -value, 0.0, 2 * value) if value else (0.0, 1.0, -1.0)))
    return (value,)
