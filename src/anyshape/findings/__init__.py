"""Findings and the errors that carry them: the messages of anyshape."""

from anyshape.findings.choices import check_choice
from anyshape.findings.errors import (
    AnyshapeError,
    ContractBroken,
    DeclarationError,
    InternalError,
    NarrowedWarning,
    PromiseBroken,
    UsageError,
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
