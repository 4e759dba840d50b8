"""Findings and the errors that carry them: the words in which anyshape speaks to its users."""

from anyshape.findings.choices import check_choice
from anyshape.findings.errors import (
    AnyshapeError,
    ContractBroken,
    DeclarationError,
    InternalError,
    PromiseBroken,
    UsageError,
)
from anyshape.findings.finding import Finding, Remedy, Severity, Source
from anyshape.findings.narrowed import NarrowedWarning
from anyshape.findings.render import render, render_all

__all__ = [
    "AnyshapeError",
    "ContractBroken",
    "DeclarationError",
    "Finding",
    "InternalError",
    "NarrowedWarning",
    "PromiseBroken",
    "Remedy",
    "Severity",
    "Source",
    "UsageError",
    "check_choice",
    "render",
    "render_all",
]
