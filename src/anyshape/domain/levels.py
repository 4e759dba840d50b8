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
    modest: int  # as large as is tried often; the level `high` begins here
    pools: Mapping[str, tuple[int, ...]]

    def level_of(self, size: int) -> str:
        """The level of any size of the dim, listed or not."""
        for level, pool in self.pools.items():
            if size in pool:
                return level
        if size >= self.modest:
            return "high"
        return "odd" if (size // self.dim.multiple) % 2 else "even"

    def middle(self) -> tuple[int, ...]:
        """The sizes between the ends, or the ends if there are none between."""
        between = self.pools.get("odd", ()) + self.pools.get("even", ())
        return between or tuple(size for pool in self.pools.values() for size in pool)

    def telling(self) -> tuple[int, ...]:
        """All listed sizes."""
        return tuple(size for pool in self.pools.values() for size in pool)


def reach(dim: Dim, example: int | None, smallest: int) -> tuple[int, int]:
    """A modest size and the largest size to try.

    The modest one is about four times the example, or the smallest size that occurs; the largest is the dim's end, and
    the modest one if there is none.
    """
    enough = max(_MODEST, 4 * (example or 0), 4 * smallest if smallest > 1 else 0, smallest + 8 * dim.multiple)
    modest = dim.largest_up_to(enough) or dim.smallest
    return modest, modest if dim.max is None else dim.largest_up_to(dim.max) or dim.smallest


def levels_of(dim: Dim, example: int | None, modest: int, high: int) -> Levels:
    """The dim's telling sizes from its smallest to `high`; sizes are told apart in steps of the multiple."""
    step, smallest = dim.multiple, dim.smallest
    low = step if smallest == 0 else smallest
    modest = modest if high > 2 * modest else high
    pools: dict[str, tuple[int, ...]] = {"zero": (0,)} if smallest == 0 else {}
    if low <= high:
        pools["low"] = (low,)
    if high > low:
        pools["high"] = _high_pool(dim, modest, high, low)
    taken = {size for pool in pools.values() for size in pool}
    middle = [size for size in _between(dim, example, low, high) if size not in taken and size < modest]
    for level, parity in (("odd", 1), ("even", 0)):
        pool = tuple(size for size in middle if (size // step) % 2 == parity)
        if pool:
            pools[level] = pool
    return Levels(dim, modest, pools)


def _high_pool(dim: Dim, modest: int, high: int, low: int) -> tuple[int, ...]:
    """The end first, then modest sizes by turns with large ones: the large are slow, and seldom tell more."""
    neighbour = [high - dim.multiple] if dim.max is not None and high - 3 * dim.multiple > low else []
    if high == modest:
        return (high, *neighbour)
    powers = [2**power * dim.multiple + offset * dim.multiple for power in range(6, 13) for offset in (0, 1, -1)]
    return tuple(dict.fromkeys([high, modest, *neighbour, *(size for size in powers if modest < size < high)]))


def _between(dim: Dim, example: int | None, low: int, high: int) -> list[int]:
    step, base = dim.multiple, low // dim.multiple
    around_powers = [2**power + offset for power in range(6, 13) for offset in (0, 1, -1)]
    around_ends = [base + 1, base + 2, base + 3, base + 5, (base + high // step) // 2, (base + high // step) // 2 + 1]
    beyond = [2 * example // step + 1, 3 * example // step, example // step + 1] if example else []
    units = dict.fromkeys([*_TELLING[:8], *beyond, *_TELLING[8:], *around_powers, *around_ends])
    sizes = [unit * step for unit in units if low < unit * step < high]
    # The example is known to work: any other size of its kind says more.
    return [size for size in sizes if size != example] + [size for size in sizes if size == example]
