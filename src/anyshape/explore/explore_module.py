"""Try the user's module over the domain, and learn the rules under which it answers.

No file exists yet: this is about the module alone, and what it refuses is no fault of a file. Nothing is captured here either;
who calls `explore` may give it conditions from captures as candidates for rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from anyshape.domain import AnyOf, Condition, Domain, Sizes, choose_sizes, dims_of, holds
from anyshape.domain.telling_points import choose_telling
from anyshape.explore.cost_estimates import Costing
from anyshape.explore.evidence import RUNS, TrialAllowance, gather_evidence
from anyshape.explore.limits import (
    SPARED,
    bisect_bounds,
    double_sizes,
    double_sizes_by_probes,
    is_doubling_dear,
    upper_corners,
)
from anyshape.explore.rules import explain, find_form_that_holds, find_hole, fresh_points, pinned_dims, points_beyond
from anyshape.findings import Source
from anyshape.inputs import Declared
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored, Lesson
from anyshape.records.verdict import Refusal, Untried

Try = Callable[[Mapping[str, int]], Refusal | None]
Candidates = Callable[[Sequence[Mapping[str, int]]], Iterable[Sequence[Condition]]]

_ROUNDS = 12
_POINTS = 24
_FORBIDDEN = 6
_ADMITTED = 5


class TrialLog:
    """Every point that was tried, once, with the module's outcome."""

    def __init__(self, try_sizes: Try) -> None:
        self._try = try_sizes
        self.answered: list[dict[str, int]] = []
        self.refused: list[Refusal] = []
        self._seen: dict[tuple[tuple[str, int], ...], bool] = {}

    def answers(self, sizes: Mapping[str, int]) -> bool:
        """Whether the module answers at these sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self._seen:
            refusal = self._try(sizes)
            self._seen[key] = refusal is None
            if refusal is None:
                self.answered.append(dict(sizes))
            else:
                self.refused.append(refusal)
        return self._seen[key]

    def assume_answer(self, sizes: Mapping[str, int]) -> bool:
        """Take for granted that the module answers at these sizes, unless it was tried there."""
        key = tuple(sorted(sizes.items()))
        if key not in self._seen:
            self._seen[key] = True
            self.answered.append(dict(sizes))
        return self._seen[key]

    @property
    def refused_sizes(self) -> list[Mapping[str, int]]:
        return [refusal.sizes for refusal in self.refused]


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
    rules = _learn(domain, trial_log, cost, shown)
    if not _explains_well(rules):
        refused = sorted(trial_log.refused_sizes, key=lambda sizes: sum(sizes.values()))
        for captured in _conditions_that_hold(candidates(refused), trial_log):
            rules = _learn(domain, trial_log, cost, [*shown, *captured])
            if _explains_well(rules):
                break
    explored = _explored(trial_log, rules or (), corners, is_explained=rules is not None)
    left_out = [*(corner for corner in far if corner not in corners), *too_dear]
    return replace(explored, left_out=tuple(Untried(sizes, cost.excess(sizes) or SPARED) for sizes in left_out))


def _explains_well(rules: Sequence[Condition] | None) -> bool:
    return rules is not None and all(find_hole(rule) is None for rule in rules)


def _conditions_that_hold(
    candidates: Iterable[Sequence[Condition]], trial_log: TrialLog
) -> Iterator[Sequence[Condition]]:
    """Those of the candidates that hold wherever the module answered, some for sizes of 1 as well; none twice."""
    before: Sequence[Condition] = []
    for found in candidates:
        forms = (find_form_that_holds(rule, trial_log.answered) for rule in found)
        captured = [form for form in forms if form is not None]
        if captured and captured != before:
            yield captured
        before = captured


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


def _learn(
    domain: Domain, trial_log: TrialLog, cost: Costing, captured: Sequence[Condition]
) -> tuple[Condition, ...] | None:
    """Rules that also predicted points which they had not seen; None when there are none. `captured` come from captures."""
    if not trial_log.refused:
        return ()
    allowed = TrialAllowance(domain, cost, trial_log.answered)
    small = sorted(trial_log.answered[1:], key=lambda sizes: sum(sizes.values()))

    def answers(sizes: Mapping[str, int]) -> bool:
        is_answered = allowed(sizes) and trial_log.answers(sizes)
        if is_answered:
            allowed.spend(sizes)
        return is_answered

    def settle() -> tuple[Condition, ...] | None:
        return _settle(domain, trial_log, cost, allowed, answers, captured)

    if cost.is_dear and _ends_explain(trial_log):
        return settle()
    for _ in gather_evidence(domain, trial_log.answered[0], [*small[:1], *small[-1:]], answers):
        rules = settle() if cost.is_dear else None
        is_simple = rules is not None and all(len(dims_of(rule)) == 1 for rule in rules)
        if rules is not None and is_simple and _holds_at_lowest(domain, rules, trial_log):
            return rules
        allowed.expect_refusals(())
    return settle()


def _settle(
    domain: Domain,
    trial_log: TrialLog,
    cost: Costing,
    allowed: TrialAllowance,
    answers: Callable[[Mapping[str, int]], bool],
    captured: Sequence[Condition],
) -> tuple[Condition, ...] | None:
    """Rules that explain all points so far and predict others; None when there are none."""
    for turn in range(_ROUNDS):
        bisect_bounds(domain, trial_log.answered, trial_log.refused_sizes, answers)
        rules = explain(trial_log.answered, trial_log.refused_sizes, captured)
        if rules is None:
            return None
        seen = len(trial_log.refused)
        allowed.expect_refusals(rules)
        beyond = points_beyond(
            domain, rules, captured, lambda sizes: _is_as_cheap(sizes, trial_log, cost) or allowed(sizes)
        )
        fresh = fresh_points(domain, rules, trial_log.answered, allowed, turn)
        if _predict(rules, chain(beyond, fresh), trial_log):
            is_tested = not allowed.denied or _is_tested(rules, trial_log.refused_sizes[seen:])
            return rules if is_tested and _admits_more(domain, rules, trial_log) else None
    return None


def _is_as_cheap(sizes: Sizes, trial_log: TrialLog, cost: Costing) -> bool:
    """Whether a call takes no more than that at the example's sizes."""
    return cost.operations(sizes) <= cost.operations(trial_log.answered[0])


def _holds_at_lowest(domain: Domain, rules: Sequence[Condition], trial_log: TrialLog) -> bool:
    """Whether the module answers with all dims at their lowest answered sizes together, as rules about single dims say."""
    lowest = {name: min(sizes[name] for sizes in trial_log.answered) for name in trial_log.answered[0]}
    return not domain.contains(lowest) or _predict(rules, [lowest], trial_log)


def _ends_explain(trial_log: TrialLog) -> bool:
    """Whether each refused point is beyond the end of a dim: one size above the largest that was answered, at equal others."""
    largest = {name: max(sizes[name] for sizes in trial_log.answered) for name in trial_log.answered[0]}
    ends = [
        name
        for name, size in largest.items()
        if any(
            {**refused, name: size} in trial_log.answered and refused[name] == size + 1
            for refused in trial_log.refused_sizes
        )
    ]
    return all(any(refused[name] > largest[name] for name in ends) for refused in trial_log.refused_sizes)


def _predict(rules: Sequence[Condition], points: Iterable[Mapping[str, int]], trial_log: TrialLog) -> bool:
    """Whether the module answers at just those of the points at which the rules hold; the first other one ends it."""
    return all(trial_log.answers(sizes) == all(holds(rule, sizes) for rule in rules) for sizes in points)


def _admits_more(domain: Domain, rules: Sequence[Condition], trial_log: TrialLog) -> bool:
    """Whether alternatives admit more than a few points: a list of all that answered describes them, too, and no others.

    Where each dim has an upper end, a few may be all that there are.
    """
    names = {name for rule in rules for name in dims_of(rule)}
    has_alternatives = any(isinstance(rule, AnyOf) for rule in rules)
    if not has_alternatives or all(domain.dim(name).max is not None for name in names):
        return True
    admitted = {tuple(sizes[name] for name in names) for sizes in trial_log.answered}
    return len(admitted) >= _ADMITTED or bool(pinned_dims(trial_log.answered, trial_log.refused_sizes))


def _is_tested(rules: Sequence[Condition], refused: Sequence[Mapping[str, int]]) -> bool:
    """Whether each rule about several dims forbade some of these points, which were tried after it was found."""
    related = [rule for rule in rules if len(dims_of(rule)) > 1]
    return all(sum(not holds(rule, sizes) for sizes in refused) >= _FORBIDDEN for rule in related)


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
