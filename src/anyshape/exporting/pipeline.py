"""The stages of an export in order.

declared -> explored -> [ captured -> exported -> verified ] for each rung, until one is right -> contract
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from anyshape.contract import write_contract
from anyshape.contract.build import build_contract, describe_run
from anyshape.diagnose.captures import diagnose_training
from anyshape.diagnose.consent import accept_refusals, diagnose_out_of_time, pinned_condition
from anyshape.diagnose.one_size import diagnose_left_out, refusals_of_others
from anyshape.diagnose.refusals import diagnose_refusals
from anyshape.diagnose.value_findings import diagnose_learned_values, diagnose_made_values
from anyshape.domain import negate
from anyshape.exporting.constancy import Constant, check_noted, check_row, make_constant, reuse_calls, with_constancy
from anyshape.exporting.context import ExportContext, Options, StageClock, Tell, comparing_elsewhere
from anyshape.exporting.empty_ranges import export_from_zero_or_one
from anyshape.exporting.fix_trials import Exporting, find_left_out, try_fixes
from anyshape.exporting.ladder import try_rungs
from anyshape.exporting.module_trials import KnownBefore, diagnose_declared_values, try_module
from anyshape.findings import Finding, PromiseBroken, Reason, Severity
from anyshape.inputs import Declared, flatten_outputs
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.records.captured import Guard
from anyshape.records.explored import Explored, Lesson
from anyshape.records.export import Attempt, Export
from anyshape.records.runs import StageTime
from anyshape.translate.registry import Translator
from anyshape.verify import Reference

if TYPE_CHECKING:
    import torch

_MOST_LESSONS = 3
_NEARLY_ALL = 0.9
_TRYING = "trying the fix"
_CALL_SHARE = 4  # of the time of an export, for one call of the module


def export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell) -> Export:
    """A model that keeps its promise. Raises PromiseBroken with the findings against it."""
    limit, clock, began = TimeLimit(options.time_limit_s), StageClock(), time.monotonic()
    timed = _timed(tell, limit, clock)
    facts = describe_run(type(module).__name__, declared, options.verify.seed)
    refused: PromiseBroken | None = None

    def run(module: torch.nn.Module, declared: Declared, options: Options) -> Export:
        return _export(module, declared, options, timed, limit)

    try:
        with limit:
            try:
                result = run(module, declared, options)
            except PromiseBroken as broken:
                refused, took, stages = broken, time.monotonic() - began, clock.times
                refused.run = replace(facts, seconds=took, stages=stages)
                with comparing_elsewhere(None):  # other processes have only the module as it was
                    try_fixes(broken, Exporting(module, declared, options, run, timed, limit, took))
                total = time.monotonic() - began
                refused.run = replace(facts, seconds=total, stages=(*stages, StageTime(_TRYING, total - took)))
                raise
    except OutOfTime:
        if refused is None:
            refused = PromiseBroken(diagnose_out_of_time(limit.seconds, limit.stage, ()))
            refused.run = replace(facts, seconds=time.monotonic() - began, stages=clock.times)
        raise refused from None
    costs = None if result.run is None else result.run.costs
    return replace(result, run=replace(facts, costs=costs, seconds=result.seconds, stages=clock.times))


def _timed(tell: Tell, limit: TimeLimit, clock: StageClock) -> Tell:
    """A progress callback that also measures the stages, and ends an export whose time is over."""

    def timed(stage: str, done: int, total: int) -> None:
        limit.stage = f"{stage}, {done} of {total}" if total else stage
        limit.check()
        clock.enter(stage)
        tell(stage, done, total)

    return timed


def _export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell, limit: TimeLimit) -> Export:
    training = diagnose_training(module)
    tell("calling the model again", 0, 0)
    constant = make_constant(module, declared, options)
    return export_from_zero_or_one(constant, lambda made: _export_constant(made, training, tell, limit), limit)


def _export_constant(constant: Constant, training: Sequence[Finding], tell: Tell, limit: TimeLimit) -> Export:
    began = time.monotonic()
    module, declared, options = constant.module, constant.declared, constant.options
    with Reference(module, flatten_outputs, apart=True, seconds=limit.seconds / _CALL_SHARE) as reference:
        known = KnownBefore(constant.cost if not constant.states else None)
        for sizes in reuse_calls(constant, reference):
            known.note_answer(sizes)
        rungs = _try_until_rules_hold(_Job(module, declared, reference, options, tell, limit, known))
    context, attempts = rungs.context, rungs.attempts
    findings = [*context.declared.notes, *training, *constant.findings, *rungs.findings]
    late = check_noted(constant, reference.noted)
    _stop_at_errors(late, attempts)
    findings += late
    best = _best(attempts)
    if limit.left <= 0 and not best.is_right:
        findings.append(diagnose_out_of_time(limit.seconds, limit.stage, attempts))
    findings += (*_ended_early(attempts, best), *best.findings)
    findings += check_row(constant, best) if best.is_right and not options.verify.is_skipped else ()
    narrowed = best.declared or context.declared
    if best.exported is None or best.captured is None or best.verdict is None or not options.force:
        _stop_at_errors(findings, attempts)
    assert best.exported is not None and best.captured is not None and best.verdict is not None
    explored = replace(context.explored, rules=(*context.explored.rules, *best.rules))
    contract = build_contract(
        narrowed, explored, best.captured, best.exported, best.verdict, findings, written=declared.domain
    )
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
        run=replace(describe_run(type(module).__name__, declared, options.verify.seed), costs=context.cost.table()),
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
    known: KnownBefore
    blamed: list[Guard] = field(default_factory=list)

    @cached_property
    def translator(self) -> Translator:
        """One translator for the whole export: it keeps the programs that it has decomposed."""
        return Translator(users=self.options.translations)


@dataclass(frozen=True)
class _TriedRungs:
    """What each rung came to, the facts that it worked with, and the findings about the domain."""

    context: ExportContext
    attempts: tuple[Attempt, ...]
    findings: tuple[Finding, ...]

    @property
    def lessons(self) -> list[Lesson]:
        """Sizes of a file's contract that the module refused although rules were known: the rules are not the true ones.

        Sizes at which it has other outputs are such as well.
        """
        if not self.context.explored.is_explained:
            return []
        parts = [part for attempt in self.attempts for part in attempt.raising_regions]
        shown = [Lesson(part.sizes, negate(part.condition)) for part in parts]
        return shown or [
            Lesson(sizes)
            for attempt in self.attempts
            if attempt.verdict is not None and attempt.declared is not None
            for sizes in (*attempt.refused_inside, *attempt.verdict.sizes_of_other_outputs)
        ]


def _try_until_rules_hold(job: _Job) -> _TriedRungs:
    """The ladder; where comparing meets a refusal inside the contract, the rules are learned again with that point."""
    lessons: list[Lesson] = []
    for number in range(_MOST_LESSONS):
        rungs = _learn_and_try_rungs(job, lessons, learns_again=number + 1 < _MOST_LESSONS)
        fresh = [lesson for lesson in rungs.lessons if lesson not in lessons]
        if not fresh or job.limit.left <= 0:
            break
        lessons += fresh
    return rungs


def _learn_and_try_rungs(job: _Job, lessons: Sequence[Lesson], *, learns_again: bool) -> _TriedRungs:
    options = job.options
    job.tell("trying the model", 0, 0)
    tried = try_module(job.module, job.declared, job.reference, options, lessons, job.known, job.tell)
    declared, explored = tried.declared, tried.explored
    made = () if tried.has_legal_integers else diagnose_made_values(job.module, declared, explored)
    values = diagnose_declared_values(job.declared, explored, job.reference)
    refusals = values or made or explain_refusals(declared, explored, job.reference)
    findings = [*diagnose_learned_values(tried.values, tried.order), *refusals]
    declared = replace(declared, domain=explored.narrow(declared.domain))
    if options.accept_narrower:
        findings = accept_refusals(findings)
        declared = replace(declared, domain=declared.domain.narrowed(pinned_condition(explored)))
    _stop_at_errors(findings)
    context = ExportContext(
        job.module,
        declared,
        explored,
        job.reference,
        tried.cost,
        options,
        job.tell,
        limit=job.limit,
        programs=tried.programs,
        translator=job.translator,
        blamed=job.blamed,
        refused_before=tuple(lesson.sizes for lesson in lessons) if learns_again else None,
    )
    attempts, narrowings = try_rungs(context)
    return _TriedRungs(context, attempts, (*findings, *narrowings))


def explain_refusals(declared: Declared, explored: Explored, reference: Reference) -> tuple[Finding, ...]:
    """What the module's own refusals mean for the promise, axes that the declaration leaves out first."""
    if not explored.refused or not explored.answered:
        return diagnose_refusals(declared, explored)
    left_out = find_left_out(declared, reference.answers)
    others = diagnose_refusals(declared, refusals_of_others(declared, left_out, explored))
    return (*diagnose_left_out(declared, left_out, explored), *others)


def _best(attempts: tuple[Attempt, ...]) -> Attempt:
    """The attempt whose file is taken, or whose findings are shown.

    The first that is right. Else one that is right but for an end or a name that the user declared. Else one that ended for
    a reason the user can act on: integers too large, or `verify="none"` where a comparison is needed. Else the file that is
    right at nearly all sizes: it shows more than a failed capture. Else the first rung, which sees the user's code best.
    """
    right = next((attempt for attempt in attempts if attempt.is_right), None)
    short = next((attempt for attempt in attempts if attempt.is_right_but_declared_otherwise), None)
    reasons = (Reason.INTEGERS_TOO_LARGE, Reason.NEEDS_COMPARING)
    explained = next((attempt for attempt in attempts if any(map(attempt.has, reasons))), None)
    closest = max(attempts, key=lambda attempt: attempt.share_right)
    return right or short or explained or (closest if closest.share_right >= _NEARLY_ALL else attempts[0])


def _ended_early(attempts: tuple[Attempt, ...], best: Attempt) -> list[Finding]:
    """The first rung that its time ended: with more time another file might have been written.

    A warning where a file is right. Else an error beside those of the attempt that is shown, which may not be that rung's.
    """
    others = attempts[: attempts.index(best)] if best.is_right else [each for each in attempts if each is not best]
    ended = [finding for attempt in others for finding in attempt.findings if finding.reason is Reason.RUNG_OUT_OF_TIME]
    return [replace(finding, severity=Severity.WARNING) if best.is_right else finding for finding in ended[:1]]


def _stop_at_errors(findings: Iterable[Finding], attempts: tuple[Attempt, ...] = ()) -> None:
    if errors := [finding for finding in findings if finding.severity is Severity.ERROR]:
        broken = PromiseBroken(*errors)
        broken.attempts = attempts
        raise broken
