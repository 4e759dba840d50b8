"""Learn rules from traces: trace, align the traces, explain their numbers, and repeat until the rules predict further traces.

Traces are made at sizes of many remainders without coincidences, then at those where rivals of a rule would differ.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from anyshape.capture.generalized.explained_arguments import Explained, explain_template
from anyshape.capture.generalized.fit_forms import roundings
from anyshape.capture.generalized.not_learned import (
    NotCaptured,
    not_predicted,
    not_traceable,
    traces_differ,
    value_asked,
)
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.template import Template, Unaligned
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.values_in_traces import ReadsInputValue
from anyshape.domain import ROOT, Compare, Condition, Domain, Expr, Number, Op, Sizes, choose_sizes, evaluate, is_about
from anyshape.findings import AnyshapeError, Reason
from anyshape.inputs import Declared

Answers = Callable[[Sizes], bool]
Strides = Mapping[str, int]
"""By how much a dim grows for one more step of a loop over parts of it."""
Fact = tuple[str, str, int]

NO_STRIDES: Strides = {}
_MOST_PARTS = 6
_MANY_FACTS = 6  # as many as a new number of parts is worth: traces of one length show no loop

_MODULI = (2, 3, 4, 5, 7, 8)
_DRAWS = 500
_ELEMENTS = 4_000_000
_ROUNDS = 5
_FEWEST_ROUNDS = 3  # however slow the machine is
_MORE_TRACES = 2


def first_sizes(
    declared: Declared, answers: Answers, largest: int, count: int, strides: Strides = NO_STRIDES
) -> list[dict[str, int]]:
    """Sizes to begin with, at which the module answers: unlike one another, and unlike the model's constants."""
    candidates = list(_draw(declared, largest, strides))
    chosen: list[dict[str, int]] = []
    covered: set[Fact] = set()
    while candidates and len(chosen) < count:
        best = max(candidates, key=lambda sizes: _worth(declared, sizes, covered, strides))
        candidates.remove(best)
        if answers(best):
            chosen.append(best)
            covered |= _facts(best, strides)
    return chosen


def telling_sizes(
    declared: Declared,
    answers: Answers,
    rules: Sequence[Expr],
    seen: Sequence[Sizes],
    largest: int | None,
    count: int,
    strides: Strides = NO_STRIDES,
) -> list[dict[str, int]]:
    """Sizes that were not traced yet: the domain's ends, and both sides of every step that a rule has."""
    known = {tuple(sorted(sizes.items())) for sizes in seen}
    names = set(declared.domain.names)
    steps = [condition for rule in rules for condition in _steps(rule)]
    steps[:0] = [Compare("==", name, Number(size)) for rule in rules for name, size in roundings(rule)]
    conditions = [condition for condition in dict.fromkeys(steps) if is_about(condition, names)]
    domain = _below(declared.domain, largest, strides)
    try:
        proposed = choose_sizes(
            domain, conditions=conditions[:24], cost=declared.elements, budget=_ELEMENTS, limit=4 * count
        ).points
    except Exception:  # the smaller domain may be empty
        proposed = ()
    fresh = [dict(sizes) for sizes in proposed if tuple(sorted(sizes.items())) not in known]
    found = [sizes for sizes in fresh[: 2 * count] if answers(sizes)][:count]
    if len(found) < count // 2:
        drawn = (
            sizes for sizes in _draw(declared, largest or 60, strides) if tuple(sorted(sizes.items())) not in known
        )
        found += [sizes for sizes, _ in zip(drawn, range(8 * count), strict=False) if answers(sizes)][
            : count - len(found)
        ]
    return found


def _below(domain: Domain, largest: int | None, strides: Strides) -> Domain:
    if largest is None:
        return domain
    from anyshape.domain import Ref

    ends = {dim.name: _end(dim.name, largest, strides) for dim in domain.dims}
    fitting = [dim.name for dim in domain.dims if dim.smallest <= ends[dim.name]]
    return domain.narrowed(*(Compare("<=", Ref(name), Number(ends[name])) for name in fitting))


def _end(name: str, largest: int, strides: Strides) -> int:
    """The largest size of a dim: some parts of a dim that is taken in parts."""
    return max(largest, strides[name] * min(largest, _MOST_PARTS)) if name in strides else largest


def _steps(rule: Expr) -> Iterator[Condition]:
    """Where a rule changes its course: quotients at their steps, least and greatest where they meet."""
    if not isinstance(rule, Op):
        return
    for part in rule.args:
        yield from _steps(part)
    if rule.symbol in ("//", "%"):
        yield Compare("==", rule.args[0] % rule.args[1], Number(0))
    if rule.symbol == ROOT:
        yield Compare("==", rule * rule, rule.args[0])
    if rule.symbol in ("min", "max"):
        yield Compare("<=", rule.args[0], rule.args[1])


def _draw(declared: Declared, largest: int, strides: Strides) -> Iterator[dict[str, int]]:
    domain = declared.domain
    chooser = random.Random(0)
    options = {dim.name: _options(dim, _end(dim.name, largest, strides)) for dim in domain.dims}
    drawn: set[tuple[int, ...]] = set()
    for _ in range(_DRAWS):
        sizes = {name: chooser.choice(values) for name, values in options.items()}
        if tuple(sizes.values()) not in drawn and domain.contains(sizes) and declared.elements(sizes) <= _ELEMENTS:
            drawn.add(tuple(sizes.values()))
            yield sizes
    if len(drawn) < 20:
        for sizes in choose_sizes(domain, cost=declared.elements, budget=_ELEMENTS, limit=40).points:
            if tuple(sizes.values()) not in drawn:
                drawn.add(tuple(sizes.values()))
                yield dict(sizes)


def _options(dim: object, largest: int) -> list[int]:
    from anyshape.domain import Dim

    assert isinstance(dim, Dim)
    top = dim.largest_up_to(max(largest, dim.smallest + largest * dim.multiple if dim.smallest >= largest else largest))
    high = top if top is not None else dim.smallest
    values = list(range(dim.smallest, high + 1, dim.multiple))
    return values or [dim.smallest]


def _facts(sizes: Sizes, strides: Strides) -> set[Fact]:
    """What these sizes show: remainders, the sizes themselves, and how many parts a dim has that is taken in parts."""
    residues = {(name, f"% {modulus}", size % modulus) for name, size in sizes.items() for modulus in _MODULI}
    parts = {(name, "parts", sizes[name] // stride) for name, stride in strides.items() if name in sizes}
    return residues | parts | {(name, "size", size) for name, size in sizes.items()}


def _worth(declared: Declared, sizes: Sizes, covered: set[Fact], strides: Strides) -> tuple[int, int]:
    fresh = len(_facts(sizes, strides) - covered) + _MANY_FACTS * sum(
        (name, "parts", sizes[name] // stride) not in covered for name, stride in strides.items() if name in sizes
    )
    return fresh - 6 * accidents(declared, sizes), -sum(sizes.values())


def accidents(declared: Declared, sizes: Sizes) -> int:
    """Coincidences: equal axes, sizes of 0 and 1, sizes like a constant of the inputs."""
    open_axes = {axis for leaf in declared.open_leaves for axis in leaf.axes if not isinstance(axis, Number)}
    constants = {axis.value for leaf in declared.open_leaves for axis in leaf.axes if isinstance(axis, Number)}
    values = [evaluate(axis, sizes) for axis in open_axes]
    small = sum(1 for value in values if value < 2)
    return small + len(values) - len(set(values)) + sum(1 for value in values if value in constants)


LayOver = Callable[[Sequence[Trace]], Template]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to learn: how traces are laid over one another, at which sizes they are taken, and for how long.

    `also` are sizes that rules must predict, too, as far as they lie in the domain.
    """

    lay_over: LayOver
    first: int = 8
    unseen: int = 8
    largest: int = 40
    largest_unseen: int | None = None
    seconds: float = 60.0  # of CPU time
    also: Sequence[Sizes] = ()
    strides: Strides = field(default_factory=dict)


@dataclass(frozen=True)
class LearnedProgram:
    """A program with rules for its numbers: how many traces they were learned from, and how many more they predicted."""

    explained: Explained
    traces: int
    predicted: int


class Learner:
    """Learns one module's program."""

    def __init__(self, recorder: Recorder, declared: Declared, answers: Answers, plan: Plan) -> None:
        self._recorder = recorder
        self._declared = declared
        self._answers = answers
        self._plan = plan

    def learn(self) -> LearnedProgram:
        """The program, with rules that held on unseen traces. Raises NotCaptured."""
        plan, began = self._plan, time.thread_time()
        traces = [self._trace(sizes) for sizes in self._first_sizes()]
        for turn in range(_ROUNDS):
            try:
                explained = explain_template(self._laid(traces))
            except NotCaptured as refusal:
                has_no_rule = refusal.finding.reason is Reason.NUMBER_WITHOUT_RULE
                more = self._more_traces(traces) if has_no_rule and turn < _MORE_TRACES else []
                if not more:
                    raise
                traces += more
                continue
            rules = explained.rules()
            sizes = telling_sizes(
                self._declared,
                self._answers,
                explained.fits.explained,
                [trace.sizes for trace in traces],
                plan.largest_unseen,
                plan.unseen,
                plan.strides,
            )
            known = [trace.sizes for trace in traces]
            sizes += [each for each in self._suspects() if each not in sizes and each not in known]
            fresh = [self._trace(each) for each in sizes]
            if not fresh:
                return LearnedProgram(explained, len(traces), 0)
            again = explain_template(self._laid([*traces, *fresh]))
            if again.rules() == rules:
                return LearnedProgram(again, len(traces), len(fresh))
            traces += fresh
            if turn + 1 >= _FEWEST_ROUNDS and time.thread_time() - began > plan.seconds:
                break
        raise not_predicted(None, turn + 1)

    def _first_sizes(self) -> list[dict[str, int]]:
        """Where to begin. For a loop over parts of a dim also at the ends of parts, at which the rules of its numbers change,
        and wherever the module has been traced already: there few others are needed."""
        plan = self._plan
        if not plan.strides:
            return first_sizes(self._declared, self._answers, plan.largest, plan.first)
        known = [sizes for sizes in self._recorder.traced_at if self._declared.domain.contains(sizes)]
        known += [sizes for sizes in self._suspects() if sizes not in known]
        count = plan.first if len(known) < plan.first else (plan.first + 1) // 2
        drawn = first_sizes(self._declared, self._answers, plan.largest, count, plan.strides)
        return [*drawn, *(sizes for sizes in known if sizes not in drawn)]

    def _more_traces(self, traces: Sequence[Trace]) -> list[Trace]:
        """Further traces for a number that few do not explain: `max(1, seq // 3)` is 1 at all small sizes."""
        known = [trace.sizes for trace in traces]
        plan = self._plan
        sizes = telling_sizes(
            self._declared, self._answers, (), known, plan.largest_unseen, 2 * plan.unseen, plan.strides
        )
        return [self._trace(each) for each in sizes]

    def _suspects(self) -> list[dict[str, int]]:
        domain = self._declared.domain
        return [dict(sizes) for sizes in self._plan.also if domain.contains(sizes) and self._answers(sizes)]

    def _laid(self, traces: Sequence[Trace]) -> Template:
        try:
            return self._plan.lay_over(traces)
        except Unaligned as error:
            one, other = self._apart(traces)
            raise traces_differ(error.first, error.second, one, other) from None

    def _apart(self, traces: Sequence[Trace]) -> tuple[Sizes, Sizes]:
        """Two traces that do not fit together, for the message."""
        for trace in traces[1:]:
            if [step.signature for step in trace.steps] != [step.signature for step in traces[0].steps]:
                return trace.sizes, traces[0].sizes
        return traces[-1].sizes, traces[0].sizes

    def _trace(self, sizes: Sizes) -> Trace:
        try:
            return self._recorder.trace(sizes)
        except ReadsInputValue as error:
            raise value_asked(error.source, error.asked) from error
        except AnyshapeError:
            raise
        except Exception as error:
            raise not_traceable(error, sizes) from error
