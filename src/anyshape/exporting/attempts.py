"""One attempt of a rung, from a capture to a verdict.

captured -> output axes checked -> translated -> finished -> verified

What every file gets, whichever rung made it, is in `add_checks` and `verify_exported`. `leave_false_axes_open` compares the
output axes of a capture without proof with real outputs of the module:

    a capture that holds `n == 11` inside, output 4 long    ->    the axis has no expression, since at n=100 it is 34 long

The file computes each size itself. An untrue expression would be a false promise of the contract, and of the file's output.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from anyshape.contract import write_contract
from anyshape.contract.build import build_contract
from anyshape.contract.defend import defend
from anyshape.contract.defend_values import defend_values
from anyshape.diagnose.captures import (
    QUESTIONS,
    check_runnable,
    diagnose_translation_error,
    diagnose_unknown,
    diagnose_untranslatable,
    name_exporting_question,
    name_unfollowed,
)
from anyshape.diagnose.comparison_notes import not_watched
from anyshape.diagnose.consent import needs_comparing
from anyshape.diagnose.differences import blamed_guard, diagnose_entry, diagnose_file
from anyshape.domain import Condition, Expr, Sizes, Undefined, all_of, evaluate, holds
from anyshape.exporting.bounded import Promised, keep_exact, plan_comparisons
from anyshape.exporting.context import CompareFile, ExportContext, find_compare
from anyshape.exporting.targets import verify_for_target
from anyshape.findings import AnyshapeError, PromiseBroken
from anyshape.graphs import find_needs
from anyshape.modules.registered import collect_operators
from anyshape.modules.user_code import find_line_of
from anyshape.optimize import fold_norms, optimize
from anyshape.records.captured import Captured, OutputTensor, Region
from anyshape.records.export import Attempt, Exported, Judged
from anyshape.records.verdict import Verdict
from anyshape.saving import save_to_run
from anyshape.translate import join_regions, translate
from anyshape.translate.alike_programs import merge_alike
from anyshape.translate.exact_int64 import compute_exactly
from anyshape.translate.floats import round_inside
from anyshape.translate.lacking_forms import widen_types
from anyshape.translate.opsets import convert_opset
from anyshape.translate.whole_numbers import allow_zeros
from anyshape.verify import annotate_sizes
from anyshape.verify.cond_sides import verify_cond_sides
from anyshape.verify.reference import Answer
from anyshape.verify.request import request_for
from anyshape.verify.run import verify_from_lowest

_MOST_FAILURES = 4
_POINTS = 6


def verify_capture(captured: Captured, context: ExportContext) -> Attempt:
    """A capture, translated and verified where a file computes its sizes exactly."""
    options = context.options
    captured = captured.with_notes(context.counts, context.compiled)
    exact = keep_exact(captured, context.declared, context.explored, accept_narrower=options.accept_narrower)
    captured = exact.captured
    if exact.is_broken:
        return Attempt(captured.strategy, exact.findings, captured)
    if options.verify.is_skipped and not captured.is_proved:
        return Attempt(captured.strategy, (needs_comparing(captured.strategy, captured),), captured)
    context = replace(context, declared=exact.declared, explored=exact.explored)
    promised = context.promised(captured)
    context = context.within(promised)
    captured = leave_false_axes_open(captured, context)
    try:
        exported = add_checks(_translate(captured, context), captured, context)
    except AnyshapeError as error:
        return Attempt(captured.strategy, error.findings, captured)
    attempt = _verify_for_target(captured, exported, context, promised, captured.regions)
    unseen = [not_watched(name, line) for name, line in context.unwatched.items()]
    findings = (*exact.findings, *unseen, *diagnose_unknown(context.translator.find_unknown()), *attempt.findings)
    return replace(attempt, findings=findings, rules=(*exact.rules, *attempt.rules))


def verify_exported(captured: Captured, exported: Exported, context: ExportContext) -> Attempt:
    """A file that is no translation of one capture, finished and verified. Raises PromiseBroken."""
    promised = context.promised(captured)
    context = context.within(promised)
    return _verify_for_target(captured, add_checks(exported, captured, context), context, promised)


def add_checks(exported: Exported, captured: Captured, context: ExportContext) -> Exported:
    """What the file of every rung gets: refusals outside the contract, and the expressions of its sizes.

    Raises PromiseBroken where an operator of the file cannot be run.
    """
    check_runnable(find_needs(exported.model), collect_operators())
    draft = build_contract(context.declared, context.explored, captured, exported)
    if context.options.enforce_values and not context.is_part:
        defend_values(exported.model, draft)
    if context.options.enforce == "graph":
        defend(exported.model, draft)
    annotate_sizes(exported.model)
    return exported


def _translate(captured: Captured, context: ExportContext) -> Exported:
    """One model of all regions. Raises PromiseBroken."""
    translator = context.translator
    missing = {found.operator: found for each in captured.programs for found in translator.find_untranslatable(each)}
    if missing:
        users = context.options.translations
        raise PromiseBroken(*(diagnose_untranslatable(found, users) for found in missing.values()))
    context.tell("translating", 0, 0)
    declared, options = context.declared, context.options
    output_names = declared.name_outputs([output.path for output in captured.outputs])
    inputs = {leaf.name: leaf.axes for leaf in declared.open_leaves}
    regions = merge_alike(captured.regions, captured.outputs)
    try:
        parts = [
            translate(
                region, region.outputs or captured.outputs, translator, inputs, output_names, domain=declared.domain
            )
            for region in regions
        ]
        if options.optimize:
            never_empty = frozenset(dim.name for dim in declared.domain.dims if dim.min > 0)
            parts = [optimize(part, never_empty) for part in parts]
        joined = join_regions(parts, [region.condition for region in regions], declared)
        if options.optimize and not context.is_part:  # parts share weights, until they are put together
            fold_norms(joined.model)
        written = compute_exactly(widen_types(round_inside(joined, context.module)))
        return convert_opset(allow_zeros(written, declared.domain), options.opset)
    except AnyshapeError:
        raise
    except Exception as error:
        raise PromiseBroken(diagnose_translation_error(error)) from error


def _verify_for_target(
    captured: Captured, exported: Exported, context: ExportContext, promised: Promised, regions: Sequence[Region] = ()
) -> Attempt:
    """The file for the target of the export, verified, with the findings of that. A guard of `regions` may be blamed."""
    targeted = verify_for_target(exported, context, lambda file: _verify(captured, file, context, promised))
    exported, verdict = targeted.exported, targeted.verdict
    judged = Judged(exported, verdict, context.declared, context.explored, regions, context.is_part)
    findings = (*promised.findings, *targeted.findings, *diagnose_file(judged))
    if verdict.failures:
        findings = name_exporting_question(findings, find_line_of(context.module, QUESTIONS))
        unfollowed = promised.each.unfollowed if promised.each is not None else {}
        findings = name_unfollowed(findings, {name: use.source for name, use in unfollowed.items()})
        findings = diagnose_entry(findings, verdict, [entry for use in unfollowed.values() for entry in use.entries])
    blamed = blamed_guard(verdict, regions)
    strategy, declared = captured.strategy, context.declared
    return Attempt(strategy, findings, captured, exported, verdict, blamed, declared, promised.rules)


def _condition_of(region: Region) -> Condition:
    """Where the conditions of the user's code hold under which a program was captured that is taken for the whole domain.

    A failure elsewhere shows that the other programs are needed: then a file of all of them is made and compared.
    """
    own = [guard.condition for guard in region.guards if guard.by_user and guard.status != "proved"]
    return all_of([condition for condition in own if condition is not None])


def _find_compare(context: ExportContext) -> CompareFile | None:
    """How the file is compared by other processes; None where it is compared here.

    The draft of a contract has neither state nor randomness, and parts of a file have no contract.
    """
    options = context.options
    is_plain = options.state is None and options.random is None and not context.is_part
    return find_compare() if is_plain else None


def _verify(captured: Captured, exported: Exported, context: ExportContext, promised: Promised) -> Verdict:
    """The file that will be written, compared with the module at the most telling sizes."""
    options = context.options.verify
    if options.is_skipped:
        return Verdict(is_skipped=True)
    if not captured.is_symbolic or captured.notes:
        options = replace(options, most_failures=_MOST_FAILURES)
    elif len(captured.regions) == 1 and not captured.has_uncaptured_branch:
        options = replace(options, ends_outside=_condition_of(captured.regions[0]))
    if any(note.kind == "rounding" for note in context.notes_for(captured)):
        options = replace(options, in_doubles=False)
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "model.onnx"
        compare = _find_compare(context)
        if compare is None:
            options = replace(options, known_refused=context.known_refused(captured))
        else:
            write_contract(exported.model, build_contract(context.declared, context.explored, captured, exported))
        save_to_run(exported.model, path)
        request = request_for(path, exported.output_names, context.declared, context.reference)
        suspects = [] if captured.has_no_hidden_branch else context.suspects
        plan = plan_comparisons(captured, promised, context.explored, suspects, context.cost, options.seed)
        request = replace(request, sizes=plan.sizes, once=plan.once, left_out=plan.left_out)
        request = replace(request, allowance=context.allowance(captured, plan.decisive))
        needed = {name: collect_operators()[name] for name in find_needs(exported.model)}
        request = replace(request, operators=needed, options=options.with_progress(context.tell))
        verdict = verify_from_lowest(
            request, None if compare is None else lambda request: compare(request, context.module)
        )
        if verdict.lowest and context.options.enforce_values and not context.is_part:
            contract = build_contract(context.declared, context.explored, captured, exported, verdict)
            defend_values(exported.model, contract, verdict.lowest)
            save_to_run(exported.model, path)  # another file, which is compared again
            verdict = verify_from_lowest(request)
        if verdict.passed and captured.is_symbolic:
            return replace(verdict, sides=verify_cond_sides(request))
        return verdict


Seen = list[tuple[Sizes, Answer]]


def leave_false_axes_open(captured: Captured, context: ExportContext) -> Captured:
    """The capture with None for each output axis that has another size in the module's outputs."""
    if captured.is_proved or not captured.outputs:
        return captured
    seen = list(_outputs_at(_telling_points(captured, context), context))
    regions = tuple(_checked_region(region, seen) for region in captured.regions)
    return replace(captured, outputs=_checked(captured.outputs, seen), regions=regions)


def _telling_points(captured: Captured, context: ExportContext) -> list[Sizes]:
    """Affordable sizes at which the module answered, those first that differ from the traced sizes in most dims."""
    traced = [region.traced_at for region in captured.regions]
    domain = context.declared.domain
    inside = [sizes for sizes in context.explored.answered if domain.contains(sizes) and not context.cost.excess(sizes)]

    def count_alike(sizes: Sizes) -> int:
        return sum(sizes[name] == at.get(name) for at in traced for name in sizes)

    return sorted(inside, key=count_alike)[:_POINTS]


def _outputs_at(points: Iterable[Sizes], context: ExportContext) -> Iterable[tuple[Sizes, Answer]]:
    for sizes in points:
        answer = context.reference.recall(context.declared.make(sizes, context.options.verify.seed))
        if isinstance(answer, Answer):
            yield sizes, answer


def _checked_region(region: Region, seen: Seen) -> Region:
    inside = [(sizes, answer) for sizes, answer in seen if holds(region.condition, sizes)]
    return replace(region, outputs=_checked(region.outputs, inside))


def _checked(outputs: Sequence[OutputTensor], seen: Seen) -> tuple[OutputTensor, ...]:
    shapes = [(sizes, dict(zip(answer.paths, (a.shape for a in answer.arrays), strict=True))) for sizes, answer in seen]

    def is_true(path: str, place: int, axis: Expr) -> bool:
        known = [(sizes, at[path]) for sizes, at in shapes if path in at and place < len(at[path])]
        try:
            return all(evaluate(axis, sizes) == shape[place] for sizes, shape in known)
        except Undefined:  # a division by 0 at these sizes
            return False

    return tuple(
        replace(
            output,
            axes=tuple(
                axis if axis is None or is_true(output.path, place, axis) else None
                for place, axis in enumerate(output.axes)
            ),
        )
        for output in outputs
    )
