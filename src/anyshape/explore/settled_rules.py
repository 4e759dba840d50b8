"""Learn rules under which a module answers, and call it at further sizes until they have predicted enough of these.

Where calls are dear, the conditions of a capture are candidates as soon as moves of single dims show no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from anyshape.domain import AnyOf, Condition, Domain, Sizes, dims_of, holds
from anyshape.explore.cost_estimates import Costing
from anyshape.explore.evidence import TrialAllowance, gather_evidence
from anyshape.explore.limits import bisect_bounds
from anyshape.explore.rules import (
    Rules,
    explain,
    find_form_that_holds,
    fresh_points,
    pinned_dims,
    points_at_boundaries,
    points_beyond,
)
from anyshape.records.verdict import Refusal

Try = Callable[[Mapping[str, int]], Refusal | None]
Candidates = Callable[[Sequence[Mapping[str, int]]], Iterable[Sequence[Condition]]]

_ROUNDS = 12
_FORBIDDEN = 6
_ADMITTED = 5


class TrialLog:
    """Every point that was tried, once, with the module's outcome."""

    def __init__(self, try_sizes: Try) -> None:
        self._try = try_sizes
        self.answered: list[dict[str, int]] = []
        self.refused: list[Refusal] = []
        self.without_memory: list[Refusal] = []
        self._seen: dict[tuple[tuple[str, int], ...], bool] = {}

    def answers(self, sizes: Mapping[str, int]) -> bool:
        """Whether the module answers at these sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self._seen:
            refusal = self._try(sizes)
            self._seen[key] = refusal is None
            if refusal is None:
                self.answered.append(dict(sizes))
            elif refusal.lacks_memory:
                self.without_memory.append(refusal)
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


def conditions_that_hold(
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


def learn_rules(
    domain: Domain,
    trial_log: TrialLog,
    cost: Costing,
    captured: Sequence[Condition],
    candidates: Candidates = lambda refused: (),
) -> Rules | None:
    """Rules that also predicted points which they had not seen; None when there are none. `captured` come from captures.

    Where calls are dear, rules about single dims are taken before dims are moved together: rules of the grammar, or else
    conditions of the first capture of `candidates`. Both have to explain all points and to predict as many further ones.
    """
    if not trial_log.refused:
        return ()
    learning = _Learning(domain, trial_log, cost, captured)
    small = sorted(trial_log.answered[1:], key=lambda sizes: sum(sizes.values()))
    if cost.is_dear and _ends_explain(trial_log):
        return learning.settle()
    for _ in gather_evidence(domain, trial_log.answered[0], [*small[:1], *small[-1:]], learning.answers):
        rules = learning.settle() if cost.is_dear else None
        if rules is None and cost.is_dear:
            first = islice(candidates(trial_log.refused_sizes), 1)
            shown = next(conditions_that_hold(first, trial_log), None)
            # with an allowance of its own: that for the points which follow stays as it is
            rules = None if shown is None else _Learning(domain, trial_log, cost, [*captured, *shown]).settle()
        is_simple = rules is not None and all(len(dims_of(rule)) == 1 for rule in rules)
        if rules is not None and is_simple and _holds_at_lowest(domain, rules, trial_log):
            return rules
        learning.allowed.expect_refusals(())
    return learning.settle()


class _Learning:
    """Learning from the points of a log, and from further calls as far as an allowance for them goes."""

    def __init__(self, domain: Domain, trial_log: TrialLog, cost: Costing, captured: Sequence[Condition]) -> None:
        self._domain = domain
        self._trial_log = trial_log
        self._cost = cost
        self._captured = captured
        self.allowed = TrialAllowance(domain, cost, trial_log.answered)

    def answers(self, sizes: Sizes) -> bool:
        """Whether the module answers; False where the call is not allowed."""
        is_answered = self.allowed(sizes) and self._trial_log.answers(sizes)
        if is_answered:
            self.allowed.spend(sizes)
        return is_answered

    def settle(self) -> Rules | None:
        """Rules that explain all points so far and predict others; None when there are none."""
        domain, trial_log, allowed = self._domain, self._trial_log, self.allowed
        for turn in range(_ROUNDS):
            bisect_bounds(domain, trial_log.answered, trial_log.refused_sizes, self.answers)
            rules = explain(trial_log.answered, trial_log.refused_sizes, self._captured)
            if rules is None:
                return None
            seen = len(trial_log.refused)
            allowed.expect_refusals(rules)
            beyond = points_beyond(domain, rules, self._captured, self._is_cheap_or_allowed)
            at_boundaries = points_at_boundaries(domain, rules, trial_log.answered, self._is_cheap_or_allowed)
            fresh = fresh_points(domain, rules, trial_log.answered, allowed, turn)
            if _predict(rules, chain(beyond, () if self._cost.is_dear else at_boundaries, fresh), trial_log):
                is_tested = not allowed.denied or _is_tested(rules, trial_log.refused_sizes[seen:])
                return rules if is_tested and _admits_more(domain, rules, trial_log) else None
        return None

    def _is_cheap_or_allowed(self, sizes: Sizes) -> bool:
        """Whether a call takes no more than that of the example, or is allowed."""
        is_cheap = self._cost.operations(sizes) <= self._cost.operations(self._trial_log.answered[0])
        return is_cheap or self.allowed(sizes)


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
