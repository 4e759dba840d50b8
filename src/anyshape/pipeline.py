"""The stages in order, on one screen: the only place where they meet.

declared -> explored -> [ captured -> exported -> verified ] for each rung, until one is right -> contract
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.capture.rungs import RUNGS
from anyshape.constancy import check_noted, check_row, make_constant, ways_of, with_constancy
from anyshape.contract.build import build_contract
from anyshape.contract.matching import match_file
from anyshape.contract.metadata import find_contract, write_contract
from anyshape.decided import STRATEGY as DECIDED
from anyshape.decided import asks_for_values, decide_by_values
from anyshape.diagnose.answers_beyond import diagnose_answers
from anyshape.diagnose.consent import accept_refusals, pinned_condition
from anyshape.diagnose.differences import diagnose_differences
from anyshape.diagnose.extents import diagnose_clock
from anyshape.diagnose.learned_values import diagnose_learned_values
from anyshape.diagnose.left_out_axes import diagnose_left_out, refusals_of_others
from anyshape.diagnose.made_values import diagnose_made_values
from anyshape.diagnose.modes import diagnose_training
from anyshape.diagnose.refusals import diagnose_refusals
from anyshape.diagnose.times import diagnose_out_of_time
from anyshape.domain import negate
from anyshape.explore import Costing, costing, sizes_at_numbers
from anyshape.explore.left_out import find_left_out
from anyshape.findings import Finding, PromiseBroken, Reason, Severity
from anyshape.findings.paths import quoted
from anyshape.fix_trials import Exporting, try_fixes
from anyshape.inputs import Declared, flatten_outputs
from anyshape.inputs.value_bounds import promised_values
from anyshape.ladder import climb, climb_to_consent, in_time, telling
from anyshape.last_rung import LEGACY, attempt_legacy, needs_legacy
from anyshape.loading.loaded import needed_operators
from anyshape.module_trials import diagnose_declared_values, try_module
from anyshape.modules.code_numbers import numbers_in_code
from anyshape.modules.time_limit import OutOfTime, TimeLimit
from anyshape.records.explored import Explored, Lesson
from anyshape.records.export import Attempt, Export
from anyshape.records.verdict import Verdict
from anyshape.site import Options, Site, Sizes, Tell
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.asking import Cost, SizePlan, plan_check, request_for

if TYPE_CHECKING:
    import torch

_MOST_LESSONS = 3
_NEARLY_ALL = 0.9
STRATEGIES = (*(rung.name for rung in RUNGS), DECIDED, LEGACY)


def export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell) -> Export:
    """A model that keeps its promise. Raises PromiseBroken with the findings that speak against it."""
    with TimeLimit(options.time_limit_s) as limit:
        timed, began = _timed(tell, limit), time.monotonic()

        def run(module: torch.nn.Module, declared: Declared, options: Options) -> Export:
            return _export(module, declared, options, timed, limit)

        try:
            return run(module, declared, options)
        except OutOfTime:
            finding = diagnose_out_of_time(limit.seconds, limit.stage, ())
        except PromiseBroken as broken:
            try_fixes(broken, Exporting(module, declared, options, run, timed, limit, time.monotonic() - began))
            raise
        raise PromiseBroken(finding)


def _timed(tell: Tell, limit: TimeLimit) -> Tell:
    """The same, which also ends an export whose time is over."""

    def timed(stage: str, done: int, total: int) -> None:
        limit.stage = f"{stage}, {done} of {total}" if total else stage
        limit.check()
        tell(stage, done, total)

    return timed


def _export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell, limit: TimeLimit) -> Export:
    began = time.monotonic()
    training = diagnose_training(module)
    tell("calling the model again", 0, 0)
    constant = make_constant(module, declared, options)
    module, declared, options = constant.module, constant.declared, constant.options
    with Reference(module, flatten_outputs) as reference:
        cost = constant.cost if not constant.states else None
        climbed = _climb_until_settled(_Job(module, declared, reference, options, tell, limit, cost))
    site, attempts = climbed.site, climbed.attempts
    findings = [*site.declared.notes, *training, *constant.findings, *climbed.findings]
    late = check_noted(constant, reference.noted)
    _stop_at_errors(late, attempts)
    findings += late
    best = _best(attempts)
    if limit.left <= 0 and not best.is_right:
        findings.append(diagnose_out_of_time(limit.seconds, limit.stage, attempts))
    findings += (*_ended_early(attempts, best), *best.findings)
    findings += check_row(constant, best) if best.is_right and not options.verify.is_skipped else ()
    narrowed = best.declared or site.declared
    if best.exported is None or best.captured is None or best.verdict is None or not options.force:
        _stop_at_errors(findings, attempts)
    assert best.exported is not None and best.captured is not None and best.verdict is not None
    explored = replace(site.explored, rules=(*site.explored.rules, *best.rules))
    contract = build_contract(narrowed, explored, best.captured, best.exported, best.verdict, findings)
    contract = with_constancy(contract, constant)
    write_contract(best.exported.model, contract)
    return Export(
        model=best.exported.model,
        contract=contract,
        verdict=best.verdict,
        findings=tuple(findings),
        attempts=attempts,
        device=next((str(parameter.device) for parameter in module.parameters()), "cpu"),
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True)
class _Job:
    """One export: the module, what the user declared, and how to go about it."""

    module: torch.nn.Module
    declared: Declared
    reference: Reference
    options: Options
    tell: Tell
    limit: TimeLimit
    cost: Costing | None = None  # of the module under this declaration, where it is known


@dataclass(frozen=True)
class _Climbed:
    """What each rung came to, the facts that it worked with, and the findings about the domain."""

    site: Site
    attempts: tuple[Attempt, ...]
    findings: tuple[Finding, ...]

    @property
    def lessons(self) -> list[Lesson]:
        """Sizes of a file's contract that the module refused although rules were known: the rules are not the true ones.

        Sizes at which it has other outputs are such as well.
        """
        if not self.site.explored.is_explained:
            return []
        parts = [part for attempt in self.attempts for part in attempt.refused_parts]
        shown = [Lesson(part.sizes, negate(part.condition)) for part in parts]
        return shown or [
            Lesson(sizes)
            for attempt in self.attempts
            if attempt.verdict is not None and attempt.declared is not None
            for sizes in (
                *(refused.sizes for refused in attempt.verdict.refused_in(attempt.declared.domain)),
                *attempt.verdict.sizes_of_other_outputs,
            )
        ]


def _climb_until_settled(job: _Job) -> _Climbed:
    """The ladder; where comparing meets a refusal inside the contract, the rules are learned again with that point."""
    lessons: list[Lesson] = []
    for _ in range(_MOST_LESSONS):
        climbed = _climb_once(job, lessons)
        fresh = [lesson for lesson in climbed.lessons if lesson not in lessons]
        if not fresh or job.limit.left <= 0:
            break
        lessons += fresh
    return climbed


def _climb_once(job: _Job, lessons: Sequence[Lesson]) -> _Climbed:
    options = job.options
    job.tell("trying the model", 0, 0)
    tried = try_module(job.module, job.declared, job.reference, options, lessons, job.cost)
    declared, explored = tried.declared, tried.explored
    made = () if tried.has_legal_integers else diagnose_made_values(job.module, declared, explored)
    values = diagnose_declared_values(job.declared, explored, job.reference)
    refusals = values or made or _refusals(declared, explored, job.reference)
    findings = [*diagnose_learned_values(tried.values, tried.order), *refusals]
    declared = replace(declared, domain=explored.narrow(declared.domain))
    if options.accept_narrower:
        findings = accept_refusals(findings)
        declared = replace(declared, domain=declared.domain.narrowed(pinned_condition(explored)))
    _stop_at_errors(findings)
    site = Site(job.module, declared, explored, job.reference, tried.cost, options, job.tell, limit=job.limit)
    site = replace(site, programs=tried.programs)
    attempts, narrowings = climb_to_consent(site) if options.accept_narrower else (climb(site), ())
    if explored.is_explained and any(attempt.refused_parts for attempt in attempts):
        return _Climbed(site, attempts, (*findings, *narrowings))
    return _Climbed(site, _last_attempts(site, attempts), (*findings, *narrowings))


def _last_attempts(site: Site, attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """The attempts, and those of rungs that are tried only where the others came to nothing."""
    if site.options.verify.is_skipped or any(attempt.has(Reason.VALUES_DECIDE_ELSEWHERE) for attempt in attempts):
        return attempts  # the other rungs, and torch's older exporter, follow one way of the code alone: never proved
    if asks_for_values(attempts, site.options.strategy) and site.limit.left > 0:
        attempts = (*attempts, in_time(site, DECIDED, lambda: decide_by_values(site)))
    if needs_legacy(attempts, site.options) and (site.limit.left > 0 or not attempts):
        attempts = (*attempts, in_time(site, LEGACY, lambda: attempt_legacy(site), 1.0))
    return attempts


def _refusals(declared: Declared, explored: Explored, reference: Reference) -> tuple[Finding, ...]:
    """What the module's own refusals mean for the promise, axes that the declaration leaves out first."""
    if not explored.refused or not explored.answered:
        return diagnose_refusals(declared, explored)
    left_out = find_left_out(declared, reference.answers)
    others = diagnose_refusals(declared, refusals_of_others(declared, left_out, explored))
    return (*diagnose_left_out(declared, left_out, explored), *others)


def _best(attempts: tuple[Attempt, ...]) -> Attempt:
    """The first that is right. Else one that has the end of the declared range. Else the one that came closest: a file that is
    right at nearly all sizes shows more of what is in the way than a capture that failed; without such a file the first
    rung, which sees the user's code best."""
    right = next((attempt for attempt in attempts if attempt.is_right), None)
    short = next((attempt for attempt in attempts if attempt.is_right_but_declared_otherwise), None)
    reasons = (Reason.INTEGERS_TOO_LARGE, Reason.NEEDS_COMPARING)
    told = next((attempt for attempt in attempts if any(map(attempt.has, reasons))), None)
    closest = max(attempts, key=lambda attempt: attempt.share_right)
    return right or short or told or (closest if closest.share_right >= _NEARLY_ALL else attempts[0])


def _ended_early(attempts: tuple[Attempt, ...], best: Attempt) -> list[Finding]:
    """Rungs that their time ended, as warnings: with more time another file might have been written."""
    before = attempts[: attempts.index(best)]
    ended = [finding for attempt in before for finding in attempt.findings if finding.reason is Reason.RUNG_OUT_OF_TIME]
    return [replace(finding, severity=Severity.WARNING) for finding in ended[:1]]


def check(
    path: Path,
    module: torch.nn.Module,
    declared: Declared,
    options: VerifyOptions,
    sizes: Sizes | None,
    tell: Tell,
    spelled: str = "model.py",
    operators: Mapping[str, Callable[..., Any]] | None = None,
) -> tuple[Verdict, tuple[Finding, ...]]:
    """How an existing file compares with its module over the domain, or at the given sizes alone.

    `spelled` is how the user named the model, for the line that replays a failure; `operators` run its custom nodes.
    """
    promised = find_contract(path)
    declared = promised_values(declared, promised.values) if promised is not None else declared
    constant = make_constant(module, declared, ways_of(promised, options))
    module, declared, options = constant.module, constant.declared, constant.options.verify
    matched = match_file(path, declared)
    with Reference(module, flatten_outputs) as reference:
        cost = costing(module, declared, options.budget_s)
        plan = (
            SizePlan((constant.complete(sizes),))
            if sizes is not None
            else _plan_check(module, declared, cost, options.seed)
        )
        request = replace(
            request_for(path, matched.outputs, declared, reference),
            sizes=plan.sizes,
            once=plan.once,
            left_out=plan.left_out,
            feeds=lambda inputs: matched.rename(declared.feeds(inputs)),
            operators=needed_operators(str(path), matched.needs, operators),
            options=telling(options, tell),
        )
        verdict = verify(request)
    replay = f"{quoted(str(path))} --model {quoted(spelled)}"
    unpromised = verdict.refused if promised is None else verdict.refused_in(promised.domain)
    differences = (*diagnose_differences(verdict, declared.domain, replay=replay), *diagnose_clock(verdict))
    answers = diagnose_answers(unpromised, replay)
    if verdict.tried:
        return verdict, (*constant.findings, *differences, *answers)
    # A model that always refuses says nothing.
    return verdict, answers if sizes is not None and answers else differences


def _plan_check(module: torch.nn.Module, declared: Declared, cost: Costing, seed: int) -> SizePlan:
    """What any file is compared at, and the numbers of the user's code: another exporter may have seen one side only."""
    limits = Cost(cost, cost.cheap, cost.affordable)
    plan = plan_check(declared, limits, seed)
    suspects = sizes_at_numbers(declared, numbers_in_code(module))
    return plan.with_affordable(suspects, cost.excess, limits, cost.all_work // 2)


def _stop_at_errors(findings: Iterable[Finding], attempts: tuple[Attempt, ...] = ()) -> None:
    if errors := [finding for finding in findings if finding.severity is Severity.ERROR]:
        broken = PromiseBroken(*errors)
        broken.attempts = attempts
        raise broken
