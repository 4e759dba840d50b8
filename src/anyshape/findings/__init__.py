"""Findings and the errors that carry them: the messages of anyshape.

Files, in the order in which data flows:

    finding  the record Finding: code, what, where, why, fix; and its one renderer
    errors   the exceptions, each with its findings; options that are none of their words, or no number in range
"""

from anyshape.findings.errors import (
    AnyshapeError,
    ContractBroken,
    DeclarationError,
    InternalError,
    NarrowedWarning,
    PromiseBroken,
    UsageError,
    check_choice,
)
from anyshape.findings.finding import REFUSED_SIZES, Finding, Reason, Remedy, Severity, Source, render, render_all

__all__ = [
    "REFUSED_SIZES",
    "AnyshapeError",
    "ContractBroken",
    "DeclarationError",
    "Finding",
    "InternalError",
    "NarrowedWarning",
    "PromiseBroken",
    "Reason",
    "Remedy",
    "Severity",
    "Source",
    "UsageError",
    "check_choice",
    "render",
    "render_all",
]
