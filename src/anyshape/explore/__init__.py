"""Where does the user's own module answer, and at what cost? Found by trying, before anything is captured."""

from anyshape.explore.cost import AFFORDABLE, CHEAP, Costing, costing
from anyshape.explore.extent import find_extent
from anyshape.explore.numbers import sizes_at_numbers
from anyshape.explore.stage import explore

__all__ = [
    "AFFORDABLE",
    "CHEAP",
    "Costing",
    "costing",
    "explore",
    "find_extent",
    "sizes_at_numbers",
]
