"""Findings and the errors that carry them: the messages of anyshape.

Files, in the order in which data flows:

    finding  the record Finding: code, what, where, why, fix; and its one renderer
    errors   the exceptions, each with the findings that explain it
    choices  the finding for an option that is none of its words, or no number in range
    pages    the page of a finding, for `anyshape explain`
"""

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
