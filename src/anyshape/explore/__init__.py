"""Where does the user's own module answer, and at what cost? Found by trying, before anything is captured."""

from anyshape.explore.carried import NotCarriedError, plan_state
from anyshape.explore.comparison_extent import find_extent
from anyshape.explore.cost_estimates import AFFORDABLE, CHEAP, Costing, costing
from anyshape.explore.evidence import sizes_at_numbers, spread_sizes
from anyshape.explore.explore_module import explore
from anyshape.explore.repeated_calls import are_repeats_dear
from anyshape.explore.repeats import observe_calls, observe_repeats, sizes_to_repeat

__all__ = [
    "AFFORDABLE",
    "CHEAP",
    "Costing",
    "NotCarriedError",
    "are_repeats_dear",
    "costing",
    "explore",
    "find_extent",
    "observe_calls",
    "observe_repeats",
    "plan_state",
    "sizes_at_numbers",
    "sizes_to_repeat",
    "spread_sizes",
]
