"""Stage: call the user's own module over the domain, to find where it answers and what calls cost, before a file is made.

Files, in the order in which data flows:

    explore_module     explore(): try the module, learn the rules under which it answers
    cost_estimates     estimate the work of a call at given sizes
    call_counter       count the operators of calls at a few sizes
    count_scaling      predict these counts at larger sizes
    limits             double sizes until the module raises or a call is too dear, then bisect
    evidence           which points to try next, and how many
    rule_grammar       the kinds of rules there are
    rules              points at which it answered or raised -> rules
    settled_rules      call the module at further points until rules have predicted enough of them
    legal_values       which integers the module takes
    legal_floats       which floats the module takes
    carried            repeat calls with equal inputs; the state of a model as inputs of its file
    repeats            find state and randomness from repeated calls
    noted_calls        the same for calls that wrote or drew something far out
    empty_sizes        dims without a declared range that may be 0
    comparison_extent  how far comparisons go for a capture without proof
    each_size          dims that the user's code uses as a text or a key (`str(n) in names`): each of their sizes is compared
    switches           sizes at which a comparison in the user's code comes out otherwise
"""

from anyshape.explore.carried import NotCarriedError, are_repeats_dear, plan_state, sizes_to_repeat
from anyshape.explore.comparison_extent import find_extent
from anyshape.explore.cost_estimates import AFFORDABLE, CHEAP, Costing, costing
from anyshape.explore.each_size import EachSize, Unfollowed, find_unfollowed
from anyshape.explore.evidence import sizes_at_numbers, spread_sizes
from anyshape.explore.explore_module import explore
from anyshape.explore.noted_calls import observe_calls
from anyshape.explore.repeats import observe_repeats
from anyshape.explore.switches import find_switches

__all__ = [
    "AFFORDABLE",
    "CHEAP",
    "Costing",
    "EachSize",
    "NotCarriedError",
    "Unfollowed",
    "are_repeats_dear",
    "costing",
    "explore",
    "find_extent",
    "find_switches",
    "find_unfollowed",
    "observe_calls",
    "observe_repeats",
    "plan_state",
    "sizes_at_numbers",
    "sizes_to_repeat",
    "spread_sizes",
]
