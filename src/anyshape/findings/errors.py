"""Every error that anyshape raises on purpose. Each holds the findings that explain it.

The exit status of the command line is a property of the class: 1 a promise is broken, 2 usage, 3 our own fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from anyshape.findings.finding import Finding
from anyshape.findings.render import render_all


class AnyshapeError(Exception):
    """Base of every error raised on purpose."""

    exit_status: ClassVar[int] = 1

    def __init__(self, *findings: Finding) -> None:
        super().__init__(*findings)  # keeps them in args, so that the error survives pickling
        self.findings = tuple(findings)

    @property
    def finding(self) -> Finding:
        """The first and heaviest finding."""
        return self.findings[0]

    def add(self, finding: Finding) -> None:
        """Add a finding after the others."""
        self.set_findings((*self.findings, finding))

    def set_findings(self, findings: Iterable[Finding]) -> None:
        """Put these findings in the place of those that the error holds."""
        self.findings = self.args = tuple(findings)

    def __str__(self) -> str:
        return render_all(self.findings)


class PromiseBroken(AnyshapeError):
    """The model, or the file, is not right on all of the domain that the user declared.

    `attempts` says what each rung of the ladder came to, if it was an export that failed.
    """

    attempts: tuple[Any, ...] = ()


class DeclarationError(AnyshapeError):
    """The declaration of sizes says something that cannot be meant."""

    exit_status: ClassVar[int] = 2


class UsageError(AnyshapeError):
    """A file is missing, unreadable or not what it should be; an argument cannot be honoured."""

    exit_status: ClassVar[int] = 2


class ContractBroken(AnyshapeError, ValueError):
    """A call of a loaded file lies outside the file's contract."""


class InternalError(AnyshapeError):
    """Our own fault. Never blame the user for it."""

    exit_status: ClassVar[int] = 3
