"""Where does the user's own module answer, and at what cost? Found by trying, before anything is captured."""

from anyshape.explore.cost import AFFORDABLE, CHEAP, costing
from anyshape.explore.numbers import sizes_at_numbers
from anyshape.explore.stage import explore

__all__ = ["AFFORDABLE", "CHEAP", "costing", "explore", "sizes_at_numbers"]
