"""range() of open sizes whose step is an open size, too: as many steps as at the traced sizes, where that is a condition.

    for start in range(0, length, segment): ...     with segment = length: one step, and nothing is pinned

Python's range() needs real numbers, so torch freezes the traced ones. The number of steps is a condition on sizes like that
of an `if`: it is proved, or its other side is captured too. A step that is a number pins its dim as before: how often
such a loop runs changes with the size.
"""

from __future__ import annotations

from typing import Any

from torch import SymInt


def open_range(*numbers: Any) -> Any:
    """range(), or a tuple of open sizes."""
    if (
        len(numbers) != 3
        or not isinstance(numbers[2], SymInt)
        or not all(type(each) in (int, SymInt) for each in numbers)
    ):
        return range(*numbers)
    start, stop, step = numbers
    length = stop - start
    traced, traced_step = (each.node.hint if isinstance(each, SymInt) else each for each in (length, step))
    if not isinstance(traced, int) or not isinstance(traced_step, int) or traced_step < 1:
        return range(*numbers)
    steps = max(0, -(-traced // traced_step))
    is_so = (length <= steps * step) and (length > (steps - 1) * step if steps else True)
    return tuple(start + step * number for number in range(steps)) if is_so else range(*numbers)
