"""Stage: call the user's own module over the domain, to find where it answers and what calls cost, before a file is made.

This file: explore() tries the module, and learns the rules under which it answers. What it refuses is no fault of a file: none
exists yet. Nothing is captured here either; who calls `explore` may give it conditions from captures as candidates for rules.

Files, in the order in which data flows:

    cost_estimates     estimate the work of a call at given sizes
    call_counter       count the operators of calls at a few sizes
    count_scaling      predict these counts at larger sizes
    carried            repeat calls with equal inputs; the state of a model as inputs of its file
    random_draws       calls under other random numbers
    kept_values        values that each call writes and answers depend on, though no call changed them
    repeats            find state and randomness from repeated calls
    limits             double sizes until the module raises or a call is too dear, then bisect
    evidence           which points to try next, and how many
    rule_grammar       the kinds of rules there are
    rules              points at which it answered or raised -> rules
    settled_rules      call the module at further points until rules have predicted enough of them
    legal_columns      integers whose bounds differ from column to column
    legal_values       which integers the module takes
    legal_floats       which floats the module takes
    comparison_extent  comparisons of a capture without proof: how far they go, and where the user's code may switch
    each_size          dims that the user's code uses as a text or a key (`str(n) in names`): each of their sizes is compared
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anyshape.domain import Condition, Domain, Sizes, choose_sizes, holds
from anyshape.domain.telling_points import choose_telling
from anyshape.explore.carried import NotCarriedError, are_repeats_dear, plan_state, sizes_to_repeat
from anyshape.explore.comparison_extent import find_extent, find_switches
from anyshape.explore.cost_estimates import AFFORDABLE, CHEAP, Costing, costing
from anyshape.explore.each_size import EachSize, Unfollowed, find_unfollowed
from anyshape.explore.evidence import RUNS, sizes_at_numbers, spread_sizes
from anyshape.explore.limits import (
    SPARED,
    double_sizes,
    double_sizes_by_probes,
    is_doubling_dear,
    upper_corners,
)
from anyshape.explore.repeats import observe_repeats
from anyshape.explore.rules import find_hole, pinned_dims
from anyshape.explore.settled_rules import Candidates, TrialLog, Try, conditions_that_hold, learn_rules
from anyshape.findings import Source
from anyshape.inputs import Declared
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored, Lesson
from anyshape.records.verdict import Untried

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
    "observe_repeats",
    "plan_state",
    "sizes_at_numbers",
    "sizes_to_repeat",
    "spread_sizes",
]

_POINTS = 24


def explore(
    declared: Declared,
    try_sizes: Try,
    cost: Costing,
    lessons: Sequence[Lesson] = (),
    *,
    seed: int = 0,
    candidates: Candidates = lambda refused: (),
    few: bool = False,
) -> Explored:
    """Where the module answers. The example's sizes are tried first: a module that refuses those has no domain at all.

    `lessons` are refusals that refuted the rules which were learned without them. `candidates` gives conditions that captures
    show, where the grammar alone has no rules that explain the refusals well: those of one capture, then those of further ones
    at refused sizes as well, which are made only where the first do not suffice. `few` is set where nothing is
    compared later. Then, where calls are dear, only the most informative points are tried, by calls that are stopped early,
    and the last size before the module refuses is not called at all.
    """
    domain = declared.domain
    trial_log = TrialLog(try_sizes)

    def safe_candidates(refused: Sequence[Sizes]) -> Iterable[Sequence[Condition]]:
        ended = [each.sizes for each in trial_log.refused if each.has_ended]  # a capture there would end this process
        return candidates([sizes for sizes in refused if sizes not in ended])

    if not trial_log.answers(declared.example_sizes):
        return _explored(trial_log, (), [], is_explained=False)
    points = choose_sizes(
        domain, example=declared.example_sizes, cost=cost, budget=cost.cheap, limit=_POINTS, seed=seed
    ).points
    far = upper_corners(domain)
    corners = [corner for corner in far if not cost.excess(corner)]
    for sizes in _in_proportion([*points, *corners], domain, cost, few):
        if few and cost.is_dear and not cost.refuses_early(sizes):
            trial_log.assume_answer(sizes)
        else:
            trial_log.answers(sizes)
    for lesson in lessons:
        trial_log.answers(lesson.sizes)
    too_dear = _double_sizes(declared, trial_log, cost, few)
    _move_together(domain, trial_log, cost)
    shown = [lesson.rule for lesson in lessons if lesson.rule is not None]
    rules = learn_rules(domain, trial_log, cost, shown, safe_candidates)
    if not _explains_well(rules):
        refused = sorted(trial_log.refused_sizes, key=lambda sizes: sum(sizes.values()))
        for captured in conditions_that_hold(safe_candidates(refused), trial_log):
            rules = learn_rules(domain, trial_log, cost, [*shown, *captured])
            if _explains_well(rules):
                break
    explored = _explored(trial_log, rules or (), corners, is_explained=rules is not None)
    left_out = [*(corner for corner in far if corner not in corners), *too_dear]
    untried = [Untried(sizes, cost.excess(sizes) or SPARED) for sizes in left_out]
    untried += [Untried(refusal.sizes, "the module ran out of memory") for refusal in trial_log.without_memory]
    return replace(explored, left_out=tuple(untried))


def _explains_well(rules: Sequence[Condition] | None) -> bool:
    return rules is not None and all(find_hole(rule) is None for rule in rules)


def _double_sizes(declared: Declared, trial_log: TrialLog, cost: Costing, few: bool) -> list[dict[str, int]]:
    """Try larger and larger sizes of each dim without an end; the points that cost too much."""
    if is_doubling_dear(declared.domain, declared.example_sizes, cost):
        at_end = trial_log.assume_answer if few else trial_log.answers
        return double_sizes_by_probes(declared.domain, trial_log.answered, trial_log.answers, cost, at_end)
    return double_sizes(
        declared.domain, declared.example_sizes, trial_log.answers, lambda sizes: not cost.excess(sizes)
    )


def _move_together(domain: Domain, trial_log: TrialLog, cost: Costing) -> None:
    """Try each dim that seems to have one size together with each dim of the same size: it may only have to follow that one."""
    for name, size in pinned_dims(trial_log.answered, trial_log.refused_sizes).items():
        held = next(sizes for sizes in trial_log.answered if sizes[name] == size)
        for other in (other for other in held if other != name and held[other] == size):
            for moved in (size - 1, size + 1):
                sizes = {**held, name: moved, other: moved}
                if domain.contains(sizes) and not cost.excess(sizes):
                    trial_log.answers(sizes)


def _in_proportion(points: list[dict[str, int]], domain: Domain, cost: Costing, few: bool) -> list[Mapping[str, int]]:
    """All of the points, if calls there are in proportion to the rest of the export; else the most informative ones."""
    left = cost.in_proportion // RUNS
    if cost.is_thorough or sum(map(cost.operations, points)) <= left:
        return list(points)
    decisive = choose_telling(points, domain, (), cost.operations)
    left = 0 if few else left - sum(map(cost.operations, decisive))
    taken = list(decisive)
    for point in points:
        if point not in decisive and cost.operations(point) <= left:
            left -= cost.operations(point)
            taken.append(point)
    return taken


def _explored(
    trial_log: TrialLog, rules: tuple[Condition, ...], corners: list[dict[str, int]], *, is_explained: bool
) -> Explored:
    return Explored(
        rules=tuple(Rule(rule, "found by trying", _line(rule, trial_log)) for rule in rules),
        answered=tuple(trial_log.answered),
        corners=tuple(sizes for sizes in trial_log.answered if sizes in corners),
        refused=tuple(trial_log.refused),
        pinned=pinned_dims(trial_log.answered, trial_log.refused_sizes),
        is_explained=is_explained,
    )


def _line(rule: Condition, trial_log: TrialLog) -> Source | None:
    return next((refusal.source for refusal in trial_log.refused if not holds(rule, refusal.sizes)), None)
