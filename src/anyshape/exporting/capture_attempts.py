"""The attempts of the rungs: a capture learns from the sizes at which its own file was wrong; TorchScript is tried last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyshape.capture.regions import EndlessRegions, ValuesDecideElsewhere, one_program_for_all
from anyshape.capture.rungs import CaptureContext, CaptureMethod
from anyshape.diagnose.captures import (
    as_read_from_sizes,
    diagnose_capture_error,
    diagnose_endless_regions,
    diagnose_translation_error,
    find_missing_fake,
    find_scripted,
    name_unfollowed,
)
from anyshape.exporting.attempts import verify_capture, verify_exported
from anyshape.exporting.context import ExportContext
from anyshape.findings import AnyshapeError, Finding, Reason, Severity, Source
from anyshape.optimize import optimize
from anyshape.records.captured import Captured, Guard
from anyshape.records.export import Attempt
from anyshape.translate.legacy import export_legacy
from anyshape.translate.opsets import convert_opset

_MORE_REGIONS = 3
_MOST_TURNS = 3
LEGACY = "legacy"


@dataclass(frozen=True)
class _Way:
    """How a method captures this time.

    The guards in `borders` separate regions. `is_alone`: the first region is taken for the whole domain, since another
    one has no translation. `opens_empty_sizes`: a condition that a size is 0 is a guard.
    """

    borders: tuple[Guard, ...] = ()
    is_alone: bool = False
    opens_empty_sizes: bool = False


def attempt_capture(method: CaptureMethod, captures: CaptureContext, context: ExportContext) -> Attempt:
    """One rung. One that learns from traces is tried again with the sizes at which its file was wrong."""
    for _ in range(_MOST_TURNS):
        attempt = _attempt_ways(method, captures, context)
        refuting = [sizes for sizes in attempt.refuting_sizes if sizes not in context.counterexamples]
        if attempt.is_right or method.has_regions or not refuting:
            break
        context = context.with_counterexamples(refuting)
        captures = replace(captures, suspects=context.traceable)
    return _with_line(_told_from_sizes(attempt, context), context)


def _told_from_sizes(attempt: Attempt, context: ExportContext) -> Attempt:
    """The attempt, with another reason where the number that Python reads follows from sizes and from no value."""

    def told(finding: Finding) -> Finding:
        is_of_values = finding.reason in (Reason.VALUES_DECIDE, Reason.VALUES_DECIDE_ELSEWHERE)
        is_of_sizes = (
            is_of_values and isinstance(finding.where, Source) and context.census.reads_sizes_at(finding.where)
        )
        return as_read_from_sizes(finding) if is_of_sizes else finding

    return replace(attempt, findings=tuple(map(told, attempt.findings)))


def _with_line(attempt: Attempt, context: ExportContext) -> Attempt:
    """An attempt that failed without a file and without a line gets the lines that use a size as a text or a key."""
    errors = [finding for finding in attempt.findings if finding.severity is Severity.ERROR]
    if attempt.verdict is not None or not errors or errors[0].where:
        return attempt
    unfollowed = {name: use.source for name, use in context.unfollowed(attempt.captured).items() if not use.is_rest}
    return replace(attempt, findings=name_unfollowed(attempt.findings, unfollowed))


def _attempt_ways(method: CaptureMethod, captures: CaptureContext, context: ExportContext) -> Attempt:
    """The method in one way after another, until its file is right or no other way is left."""
    way: _Way | None = _Way(tuple(context.blamed) if method.has_regions and not context.is_part else ())
    while way is not None:
        context.tell(f"capturing ({method.name})", 0, 0)
        captured = _capture(method, replace(captures, opens_empty_sizes=way.opens_empty_sizes), way)
        if isinstance(captured, Attempt):
            return captured
        attempt = verify_capture(captured, context)
        way = _next_way(way, attempt, len(captured.regions), method)
        if way is not None and not context.is_part:  # where rules are learned again, the borders are known at once
            context.blamed.extend(guard for guard in way.borders if guard not in context.blamed)
    return attempt


def _next_way(way: _Way, attempt: Attempt, regions: int, method: CaptureMethod) -> _Way | None:
    """What to change after this attempt, whose capture has so many regions; None if it is the last."""
    if attempt.verdict is None and regions > 1 and not way.is_alone:
        return replace(way, is_alone=True)
    if not method.has_regions:
        return None
    if attempt.fails_at_empty_size and not way.opens_empty_sizes:
        return replace(way, opens_empty_sizes=True)
    blamed = attempt.blamed
    if blamed is None or (blamed.by_user and regions > 1) or len(way.borders) >= _MORE_REGIONS:
        return None
    return replace(way, borders=(*way.borders, blamed))


def _capture(method: CaptureMethod, captures: CaptureContext, way: _Way) -> Captured | Attempt:
    """What the method captures; an attempt with the reasons where it cannot."""
    try:
        captured = method.capture(captures, way.borders)
        if way.is_alone:
            return one_program_for_all(captured, captured.regions, captures.declared.domain)
        return captured
    except AnyshapeError as error:
        return Attempt(method.name, error.findings)
    except EndlessRegions as error:
        return Attempt(method.name, (diagnose_endless_regions(error.guard),), blamed=error.guard)
    except ValuesDecideElsewhere as error:
        finding = replace(diagnose_capture_error(error.error), reason=Reason.VALUES_DECIDE_ELSEWHERE)
        return Attempt(method.name, (finding,))
    except Exception as error:  # whatever torch raises; Ctrl-C goes through
        missing = find_scripted(captures.module) or find_missing_fake(error)
        return Attempt(method.name, (missing or diagnose_capture_error(error),))


def needs_legacy(attempts: Sequence[Attempt], context: ExportContext) -> bool:
    """Whether the last rung is tried. It can use neither the user's translations nor the sizes of an output's axes."""
    if context.options.strategy is not None:
        return context.options.strategy == LEGACY
    is_right = any(attempt.is_right or attempt.is_right_but_declared_otherwise for attempt in attempts)
    is_translated = bool(context.options.translations) and any(attempt.captured is not None for attempt in attempts)
    is_named = any(attempt.has(Reason.OUTPUT_AXIS) for attempt in attempts)
    return not (is_right or is_translated or is_named)


def attempt_legacy(context: ExportContext) -> Attempt:
    """The last rung: torch's TorchScript exporter, which gives a file without a program that we could look into."""
    context.tell(f"exporting ({LEGACY})", 0, 0)
    try:
        exported = export_legacy(context.module, context.declared)
        exported = optimize(exported) if context.options.optimize else exported
        exported = convert_opset(exported, context.options.opset)
        captured = Captured(LEGACY, (), tuple(output for _, output in exported.outputs))
        return verify_exported(captured, exported, context)
    except AnyshapeError as error:
        return Attempt(LEGACY, error.findings)
    except Exception as error:  # a rung that crashes is a note, not the end
        return Attempt(LEGACY, (diagnose_translation_error(error),))
