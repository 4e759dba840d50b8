"""The last rung of the ladder: torch's TorchScript exporter, tried where no other rung gives a right file."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.diagnose.captures import diagnose_translation_error
from anyshape.exporting.attempts import judge
from anyshape.exporting.context import ExportContext
from anyshape.findings import AnyshapeError, Reason
from anyshape.optimize import optimize
from anyshape.records.captured import Captured
from anyshape.records.export import Attempt
from anyshape.translate.legacy import export_legacy
from anyshape.translate.opsets import convert_opset

LEGACY = "legacy"


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
        captured = Captured(LEGACY, (), tuple(answer for _, answer in exported.outputs))
        return judge(captured, exported, context)
    except AnyshapeError as error:
        return Attempt(LEGACY, error.findings)
    except Exception as error:  # a rung that crashes is a note, not the end
        return Attempt(LEGACY, (diagnose_translation_error(error),))
