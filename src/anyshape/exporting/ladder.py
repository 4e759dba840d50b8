"""The ladder: the rungs in the order in which they are tried, until one gives a file that is right.

A rung without a file that is right is kept as an attempt. Where no rung has one, `_best` in the pipeline chooses the
attempt whose findings are shown. Adding a rung: docs/how-to/extend/add-a-rung.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.capture.rungs import METHODS, CaptureContext, CaptureMethod
from anyshape.diagnose.consent import diagnose_time, narrowed_by_consent, narrower_condition, with_need_of_comparing
from anyshape.domain.condition import conjuncts
from anyshape.exporting.bounded import narrowed
from anyshape.exporting.calls_at_sizes import make_trial
from anyshape.exporting.capture_attempts import attempt_capture, attempt_legacy, needs_legacy
from anyshape.exporting.context import ExportContext
from anyshape.exporting.decided import asks_for_values, decide_by_values
from anyshape.findings import Finding, Reason
from anyshape.modules.call_limits import OutOfTime
from anyshape.records.contract import Rule
from anyshape.records.export import Attempt

_MOST_NARROWINGS = 6
_HALF = 0.5


@dataclass(frozen=True)
class Turn:
    """The arguments of a rung.

    `captures` is shared by all rungs that capture. `try_first_rungs` tries the first rungs in another context: the rung
    `decided` does so for each part of a model.
    """

    context: ExportContext
    captures: CaptureContext
    try_first_rungs: Callable[[ExportContext], tuple[Attempt, ...]]


@dataclass(frozen=True)
class Rung:
    """One method of making the file.

    Rungs without `is_due` are tried first, until a file is right. Then each rung with `is_due` is tried where that is true. It
    is called even if an earlier file is right, and has to return False then.

    `share` is the part of the time that is left which it may take, in CPU time.
    """

    name: str
    attempt: Callable[[Turn], Attempt]
    is_due: Callable[[Sequence[Attempt], ExportContext], bool] | None = None
    share: float = _HALF


def _capturing(method: CaptureMethod) -> Rung:
    return Rung(method.name, lambda turn: attempt_capture(method, turn.captures, turn.context))


RUNGS = (
    *map(_capturing, METHODS),
    Rung("decided", lambda turn: decide_by_values(turn.context, turn.try_first_rungs), asks_for_values),
    Rung("legacy", lambda turn: attempt_legacy(turn.context), needs_legacy, share=1.0),
)
STRATEGIES = tuple(rung.name for rung in RUNGS)
_FIRST = tuple(rung for rung in RUNGS if rung.is_due is None)


def try_rungs(context: ExportContext) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """The attempts of all rungs until one is right, and findings about a domain that `accept_narrower` made smaller."""
    attempts, narrowings = (
        _try_on_smaller_domains(context) if context.options.accept_narrower else (_try_first_rungs(context), ())
    )
    if any(_refutes_rules(attempt, context) for attempt in attempts):
        return attempts, narrowings  # the rules are learned again, and all rungs start with other ones
    if context.options.verify.is_skipped or any(each.has(Reason.VALUES_DECIDE_ELSEWHERE) for each in attempts):
        return (
            attempts,
            narrowings,
        )  # the other rungs trace one path of the code: without comparisons, nothing shows that it is the only one
    for rung in RUNGS:
        has_time = context.limit.left > 0 or not attempts
        if rung.is_due is not None and has_time and rung.is_due(attempts, context):
            attempts = (*attempts, _in_time(rung, _turn(context)))
    return attempts, narrowings


def _try_on_smaller_domains(context: ExportContext) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """The first rungs on smaller and smaller domains, as the user accepted, until a file is right.

    The guard in the way of a right file becomes a rule of origin "model", with its line.
    """
    narrowings: list[Finding] = []
    rules: list[Rule] = []
    while True:
        attempts = _try_first_rungs(context)
        blamed = attempts[0].blamed if attempts else None
        if blamed is None or any(attempt.is_right for attempt in attempts) or len(narrowings) >= _MOST_NARROWINGS:
            return tuple(replace(each, rules=(*rules, *each.rules)) for each in attempts), tuple(narrowings)
        condition = narrower_condition(blamed, context.declared.example_sizes)
        narrowings.append(narrowed_by_consent(blamed, condition))
        new = [Rule(part, "model", blamed.source) for part in conjuncts(condition)]
        declared, explored = narrowed(context.declared, context.explored, new)
        context = replace(context, declared=declared, explored=explored)
        rules += new


def _try_first_rungs(context: ExportContext) -> tuple[Attempt, ...]:
    """The attempts of the rungs without `is_due`, in their order, until one gives a file that is right."""
    options = context.options
    turn = _turn(context)
    attempts: list[Attempt] = []
    for rung in _FIRST[:1] if options.verify.is_skipped else _FIRST:
        if options.strategy not in (None, rung.name):
            continue
        attempts.append(_in_time(rung, turn))
        if _is_last(attempts[-1], context):
            break
        captured = attempts[-1].captured
        if captured is not None and captured.sizes_against:
            turn = replace(turn, context=turn.context.with_counterexamples(captured.sizes_against))
            turn = replace(turn, captures=replace(turn.captures, suspects=turn.context.traceable))
    if options.verify.is_skipped:
        return with_need_of_comparing(attempts, options.strategy or _FIRST[1].name)
    return tuple(attempts)


def _is_last(attempt: Attempt, context: ExportContext) -> bool:
    """Whether no other of the first rungs is tried after this one."""
    is_right = attempt.is_right or attempt.is_right_but_declared_otherwise
    # A rung that learns from traces might not come to the sizes at which values decide.
    is_hopeless = _refutes_rules(attempt, context) or attempt.has(Reason.VALUES_DECIDE_ELSEWHERE)
    return is_right or is_hopeless or context.limit.left <= 0


def _refutes_rules(attempt: Attempt, context: ExportContext) -> bool:
    """Whether the rules about where the module answers are not the true ones: no rung can keep them."""
    return (bool(attempt.raising_regions) and context.explored.is_explained) or context.learns_from(attempt)


def _turn(context: ExportContext) -> Turn:
    try_sizes = make_trial(context.declared, context.reference)

    def answers(sizes: Mapping[str, int]) -> bool:
        """Sizes at which no call can be afforded count as answered: a trace needs no memory there."""
        is_known = not context.may_refuse or dict(sizes) in context.explored.answered
        return is_known or bool(context.cost.excess(sizes)) or try_sizes(sizes) is None

    captures = CaptureContext(
        context.module,
        context.declared,
        answers,
        context.translator.decompose,
        context.traceable,
        paths=context.unfollowed_paths,
        is_dear=lambda sizes: not context.cost.is_thorough and context.cost(sizes) > context.cost.cheap,
        programs=context.programs,
    )
    return Turn(context, captures, _try_first_rungs)


def _in_time(rung: Rung, turn: Turn) -> Attempt:
    """What a rung comes to within its share of the time that is left; all of it for a rung that the user chose.

    The share is CPU time: which file is written does not depend on what else the machine does.
    """
    limit, began = turn.context.limit, time.monotonic()
    try:
        with limit.part(1.0 if turn.context.options.strategy == rung.name else rung.share, of_cpu=True):
            attempt = rung.attempt(turn)
    except OutOfTime:
        attempt = Attempt(rung.name, (diagnose_time(limit.stage),))
    return replace(attempt, seconds=time.monotonic() - began)
