"""The telling sizes of one dim, in levels: zero, low, odd, even, high.

Bugs of exported models live at 0, at 1, at odd sizes, at powers of two and their neighbours, and beyond the example. A
level holds sizes that are likely to fail together, so covering all pairs of levels takes few points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anyshape.domain.dims import Dim

_TELLING = (5, 7, 2, 3, 4, 8, 11, 13, 16, 17, 9, 6, 15, 31, 32, 33, 10, 19, 14, 23, 12)
_MODEST = 33  # how far a dim without an end goes when the example does not go farther


@dataclass(frozen=True)
class Levels:
    """The sizes of one dim by level, in each the most telling first."""

    dim: Dim
    high: int
    pools: Mapping[str, tuple[int, ...]]

    def level_of(self, size: int) -> str:
        """The level of any size of the dim, listed or not."""
        for level in ("zero", "low", "high"):
            if size in self.pools.get(level, ()):
                return level
        if size >= self.high:
            return "high"
        return "odd" if (size // self.dim.multiple) % 2 else "even"


def modest_high(dim: Dim, example: int | None) -> int:
    """The largest size to try: the dim's end, or about four times the example where there is none."""
    if dim.max is not None:
        return dim.largest_up_to(dim.max) or dim.smallest
    far = max(_MODEST, 4 * (example or 0), dim.smallest + 4 * dim.multiple + _MODEST // 2)
    return dim.largest_up_to(far) or dim.smallest


def levels_of(dim: Dim, example: int | None, high: int) -> Levels:
    """The dim's telling sizes from its smallest to `high`; sizes are told apart in steps of the multiple."""
    step, smallest = dim.multiple, dim.smallest
    low = step if smallest == 0 else smallest
    pools: dict[str, tuple[int, ...]] = {"zero": (0,)} if smallest == 0 else {}
    if low <= high:
        pools["low"] = (low,)
    if high > low:
        neighbour = (high - step,) if dim.max is not None and high - step > low + 2 * step else ()
        pools["high"] = (high, *neighbour)
    taken = {size for pool in pools.values() for size in pool}
    between = [size for size in _between(dim, example, low, high) if size not in taken]
    for level, parity in (("odd", 1), ("even", 0)):
        pool = tuple(size for size in between if (size // step) % 2 == parity)
        if pool:
            pools[level] = pool
    return Levels(dim, high, pools)


def _between(dim: Dim, example: int | None, low: int, high: int) -> list[int]:
    step, base = dim.multiple, low // dim.multiple
    around_powers = [2**power + offset for power in range(6, 13) for offset in (0, 1, -1)]
    around_ends = [base + 1, base + 2, base + 3, base + 5, (base + high // step) // 2, (base + high // step) // 2 + 1]
    beyond = [2 * example // step + 1, 3 * example // step, example // step + 1] if example else []
    units = dict.fromkeys([*_TELLING[:8], *beyond, *_TELLING[8:], *around_powers, *around_ends])
    sizes = [unit * step for unit in units if low < unit * step < high]
    # The example is known to work: any other size of its kind says more.
    return [size for size in sizes if size != example] + [size for size in sizes if size == example]
