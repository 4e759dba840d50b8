"""The ladder: rung after rung, each from capture to verdict, until one gives a file that is right.

captured -> translated -> verified

A rung that cannot capture, translate or pass is a note; the findings that a user sees are those of the first rung, since
it knows the user's code best.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from anyshape.bounded import keep_exact
from anyshape.capture.rungs import RUNGS, Rung, Workshop
from anyshape.capturing import capture_or_findings
from anyshape.compared import Promised, plan_comparisons
from anyshape.contract.build import build_contract
from anyshape.contract.defend import defend
from anyshape.contract.defend_values import defend_values
from anyshape.diagnose.captures import diagnose_translation_error
from anyshape.diagnose.cond_functions import diagnose_cond_sides
from anyshape.diagnose.consent import narrowed_by_consent, narrower_condition
from anyshape.diagnose.differences import blamed_guard, diagnose_differences
from anyshape.diagnose.exporting_questions import QUESTIONS, name_exporting_question
from anyshape.diagnose.extents import diagnose_clock
from anyshape.diagnose.operators import check_runnable, diagnose_unknown, diagnose_untranslatable
from anyshape.diagnose.outputs import diagnose_outputs
from anyshape.diagnose.refusals import diagnose_refused_inside
from anyshape.diagnose.times import diagnose_time
from anyshape.diagnose.unverified import needs_comparing, with_need_of_comparing
from anyshape.findings import AnyshapeError, Finding, PromiseBroken, Reason
from anyshape.graphs.needs import find_needs
from anyshape.module_trials import trying
from anyshape.modules.time_limit import OutOfTime
from anyshape.modules.user_code import find_line_of
from anyshape.operators.registered import collect_operators
from anyshape.optimize import fold_norms, optimize
from anyshape.records.captured import Captured, Guard
from anyshape.records.export import Attempt
from anyshape.records.exported import Exported
from anyshape.records.verdict import Verdict
from anyshape.saving import save_to_run
from anyshape.site import Site, Tell
from anyshape.targets import verify_for_target
from anyshape.translate.join import join_regions
from anyshape.translate.opsets import convert_opset
from anyshape.translate.program import translate
from anyshape.translate.registry import Translator
from anyshape.translate.rounded import round_inside
from anyshape.translate.wider_types import widen_types
from anyshape.verify import VerifyOptions, tell_sizes
from anyshape.verify.asking import request_for
from anyshape.verify.cond_sides import verify_cond_sides
from anyshape.verify.run import verify_from_lowest

SYMBOLIC = RUNGS[0].name
_MORE_REGIONS = 3
_MOST_NARROWINGS = 6
_MOST_LESSONS = 3
_MOST_FAILURES = 4


def climb_to_consent(site: Site) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """The same on smaller and smaller domains, as the user accepted, until a file is right."""
    narrowings: list[Finding] = []
    while True:
        attempts = climb(site)
        blamed = attempts[0].blamed if attempts else None
        if blamed is None or any(attempt.is_right for attempt in attempts) or len(narrowings) >= _MOST_NARROWINGS:
            return attempts, tuple(narrowings)
        condition = narrower_condition(blamed, site.declared.example_sizes)
        narrowings.append(narrowed_by_consent(blamed, condition))
        site = replace(site, declared=replace(site.declared, domain=site.declared.domain.narrowed(condition)))


def climb(site: Site) -> tuple[Attempt, ...]:
    """Rung after rung, until one gives a file that is right."""
    translator = Translator(users=site.options.translations)
    try_sizes = trying(site.declared, site.reference)
    workshop = Workshop(
        site.module,
        site.declared,
        lambda sizes: not site.may_refuse or try_sizes(sizes) is None,
        translator.decompose,
        lambda: site.traceable(),
        programs=site.programs,
    )
    attempts: list[Attempt] = []
    for rung in RUNGS[:1] if site.options.verify.is_skipped else RUNGS:
        if site.options.strategy in (None, rung.name):
            attempts.append(in_time(site, rung.name, partial(_attempt, rung, workshop, site, translator)))
            if attempts[-1].is_right or attempts[-1].is_right_but_declared_otherwise or site.limit.left <= 0:
                break
            if attempts[-1].refused_parts and site.explored.is_explained:
                break  # the rules are not the true ones: no rung can keep them
            if attempts[-1].has(Reason.VALUES_DECIDE_ELSEWHERE):
                break  # a rung that learns from traces might not come to these sizes
            captured = attempts[-1].captured
            if captured is not None and (against := captured.sizes_against):
                site = replace(site, told=(*site.told, *against))
    if site.options.verify.is_skipped:
        return with_need_of_comparing(attempts, site.options.strategy or RUNGS[1].name)
    return tuple(attempts)


def in_time(site: Site, strategy: str, run: Callable[[], Attempt], share: float = 0.5) -> Attempt:
    """What a rung comes to within a share of the time that is left; all of it for a rung that the user chose."""
    share = 1.0 if site.options.strategy == strategy else share
    try:
        with site.limit.part(share):
            return run()
    except OutOfTime:
        return Attempt(strategy, (diagnose_time(site.limit.stage),))


def _attempt(rung: Rung, workshop: Workshop, site: Site, translator: Translator) -> Attempt:
    """One rung; a rung that learns from traces is tried again with the sizes at which its file was wrong."""
    for _ in range(_MOST_LESSONS):
        attempt = _attempt_once(rung, workshop, site, translator)
        refuting = [sizes for sizes in attempt.refuting_sizes if sizes not in site.told]
        if attempt.is_right or rung.has_regions or not refuting:
            break
        site = replace(site, told=(*site.told, *refuting))
        workshop = replace(workshop, suspects=site.traceable)
    return attempt


def _attempt_once(rung: Rung, workshop: Workshop, site: Site, translator: Translator) -> Attempt:
    """One rung from capture to verdict. A condition of torch's own that proves to matter separates regions as well."""
    apart: tuple[Guard, ...] = ()
    alone = False  # a region that has no translation is left out: the first program may serve its sizes, too
    while True:
        site.tell(f"capturing ({rung.name})", 0, 0)
        captured = capture_or_findings(rung, workshop, apart, alone=alone)
        if isinstance(captured, Attempt):
            return captured
        attempt = _judged_capture(captured, site, translator)
        if attempt.verdict is None and len(captured.regions) > 1 and not alone:
            alone = True
            continue
        if rung.has_regions and not workshop.opens_empty_sizes and attempt.fails_at_empty_size:
            workshop = replace(workshop, opens_empty_sizes=True)
            continue
        blamed = attempt.blamed
        is_settled = blamed is not None and blamed.by_user and len(captured.regions) > 1
        is_over = not rung.has_regions or len(apart) >= _MORE_REGIONS
        if blamed is None or is_settled or is_over:
            return attempt
        apart = (*apart, blamed)


def _judged_capture(captured: Captured, site: Site, translator: Translator) -> Attempt:
    """A capture, translated and verified where a file computes its sizes exactly."""
    exact = keep_exact(captured, site.declared, site.explored, accept_narrower=site.options.accept_narrower)
    captured = exact.captured
    if exact.is_broken:
        return Attempt(captured.strategy, exact.findings, captured)
    if site.options.verify.is_skipped and not captured.is_proved:
        return Attempt(captured.strategy, (needs_comparing(captured.strategy, captured),), captured)
    site = replace(site, declared=exact.declared, explored=exact.explored)
    promised = site.promised(captured)
    site = site.within(promised)
    try:
        exported = translated(captured, site, translator)
    except AnyshapeError as error:
        return Attempt(captured.strategy, error.findings, captured)
    targeted = verify_for_target(exported, site, lambda file: verified(captured, file, site, promised))
    exported, verdict = targeted.exported, targeted.verdict
    findings = (
        *exact.findings,
        *promised.findings,
        *targeted.findings,
        *diagnose_unknown(translator.find_unknown()),
        *diagnose_outputs(exported, site.declared.output_axes, site.declared.domain),
        *diagnose_differences(verdict, site.declared.domain, captured.regions),
        *diagnose_clock(verdict),
        *_diagnose_refused(verdict, site),
        *diagnose_cond_sides(verdict),
    )
    if verdict.failures:
        findings = name_exporting_question(findings, find_line_of(site.module, QUESTIONS))
    blamed = blamed_guard(verdict, captured.regions)
    rules = (*exact.rules, *promised.rules)
    return Attempt(captured.strategy, findings, captured, exported, verdict, blamed, site.declared, rules)


def _diagnose_refused(verdict: Verdict, site: Site) -> tuple[Finding, ...]:
    """What refusals of the module mean for a whole file; the numbers that are made for a part may contradict each other."""
    return () if site.is_part else diagnose_refused_inside(verdict, site.declared.domain, site.explored)


def translated(captured: Captured, site: Site, translator: Translator) -> Exported:
    """One model of all regions, which refuses sizes outside the contract. Raises PromiseBroken."""
    missing = {found.operator: found for each in captured.programs for found in translator.find_untranslatable(each)}
    if missing:
        raise PromiseBroken(*(diagnose_untranslatable(found, site.options.translations) for found in missing.values()))
    site.tell("translating", 0, 0)
    declared, options = site.declared, site.options
    output_names = declared.name_outputs([answer.path for answer in captured.answers])
    input_names = [leaf.name for leaf in declared.open_leaves]
    try:
        parts = [
            translate(
                region,
                region.answers or captured.answers,
                translator,
                input_names,
                output_names,
                domain=declared.domain,
            )
            for region in captured.regions
        ]
        if options.optimize:
            never_empty = frozenset(dim.name for dim in declared.domain.dims if dim.min > 0)
            parts = [optimize(part, never_empty) for part in parts]
        joined = join_regions(parts, [region.condition for region in captured.regions], declared)
        if options.optimize and not site.is_part:  # parts share weights, until they are put together
            fold_norms(joined.model)
        exported = convert_opset(widen_types(round_inside(joined)), options.opset)
    except AnyshapeError:
        raise
    except Exception as error:
        raise PromiseBroken(diagnose_translation_error(error)) from error
    check_runnable(find_needs(exported.model), collect_operators())
    _refuse_outside(exported, captured, site)
    tell_sizes(exported.model)
    return exported


def _refuse_outside(exported: Exported, captured: Captured, site: Site) -> None:
    """Add nodes to the graph that fail at sizes outside the contract, and with `enforce_values` at values outside it."""
    draft = build_contract(site.declared, site.explored, captured, exported)
    if site.options.enforce_values and not site.is_part:
        defend_values(exported.model, draft)
    if site.options.enforce == "graph":
        defend(exported.model, draft)


def verified(captured: Captured, exported: Exported, site: Site, promised: Promised) -> Verdict:
    """The file that will be written, compared with the module at the most telling sizes."""
    options = site.options.verify
    if options.is_skipped:
        return Verdict(is_skipped=True)
    if captured.strategy != SYMBOLIC:
        options = replace(options, most_failures=_MOST_FAILURES)
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "model.onnx"
        save_to_run(exported.model, path)
        request = request_for(path, exported.output_names, site.declared, site.reference)
        suspects = [] if captured.is_seen_whole else site.suspects
        plan = plan_comparisons(captured, promised, site.explored, suspects, site.cost, options.seed)
        request = replace(request, sizes=plan.sizes, once=plan.once, left_out=plan.left_out)
        request = replace(request, allowance=site.allowance(captured, plan.decisive))
        needed = {name: collect_operators()[name] for name in find_needs(exported.model)}
        request = replace(request, operators=needed, options=telling(options, site.tell))
        verdict = verify_from_lowest(request)
        if verdict.lowest and site.options.enforce_values and not site.is_part:
            contract = build_contract(site.declared, site.explored, captured, exported, verdict)
            defend_values(exported.model, contract, verdict.lowest)
            save_to_run(exported.model, path)  # another file, which is compared again
            verdict = verify_from_lowest(request)
        if verdict.passed and captured.strategy == SYMBOLIC:
            return replace(verdict, sides=verify_cond_sides(request))
        return verdict


def judged(captured: Captured, exported: Exported, site: Site) -> Attempt:
    """A file from outside the rungs of capture, made to refuse sizes outside the contract, and verified."""
    check_runnable(find_needs(exported.model), collect_operators())
    promised = site.promised(captured)
    site = site.within(promised)
    _refuse_outside(exported, captured, site)
    tell_sizes(exported.model)
    targeted = verify_for_target(exported, site, lambda file: verified(captured, file, site, promised))
    exported, verdict = targeted.exported, targeted.verdict
    findings = (
        *promised.findings,
        *targeted.findings,
        *diagnose_outputs(exported, site.declared.output_axes, site.declared.domain),
        *diagnose_differences(verdict, site.declared.domain),
        *diagnose_clock(verdict),
        *_diagnose_refused(verdict, site),
    )
    return Attempt(
        captured.strategy, findings, captured, exported, verdict, declared=site.declared, rules=promised.rules
    )


def telling(options: VerifyOptions, tell: Tell) -> VerifyOptions:
    return replace(options, progress=lambda done, total, sizes: tell("comparing", done, total))
