"""Every error that anyshape raises on purpose, and its one warning. Each holds the findings that explain it.

The exit status of the command line is a property of the class: 1 a promise is broken, 2 usage, 3 our own fault.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

from anyshape.findings.finding import Finding, render_all


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

    `attempts` is what each rung of the ladder came to, if it was an export that failed, and `run` what was declared and
    how long each stage took. `write_report` writes the page of `report`; it is None where there is no page.
    """

    attempts: tuple[Any, ...] = ()
    run: Any = None
    write_report: Callable[[PromiseBroken, Path], None] | None = None

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the refusal of an export, or a file that differs, as one HTML file, and return its path."""
        if self.write_report is None:
            raise TypeError("report() is for the errors that anyshape.export and anyshape.check raise")
        self.write_report(self, Path(path))
        return Path(path)


class DeclarationError(AnyshapeError):
    """The declaration of sizes is contradictory or cannot be read."""

    exit_status: ClassVar[int] = 2


class UsageError(AnyshapeError):
    """A file is missing, unreadable or not what it should be; an argument cannot be honoured."""

    exit_status: ClassVar[int] = 2


class ContractBroken(AnyshapeError, ValueError):
    """A call of a loaded file lies outside the file's contract."""


class InternalError(AnyshapeError):
    """Our own fault. Never blame the user for it."""

    exit_status: ClassVar[int] = 3


P = ParamSpec("P")

# contextlib's own frames lie between a function of ours and its caller where a context manager decorates the function.
_OUR_FRAMES = ("anyshape", "contextlib")


class NarrowedWarning(UserWarning):
    """The contract of the exported file is smaller than the declared domain; `findings` name the limits and their causes."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(*findings)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return render_all(self.findings)


class _HasFindings(Protocol):
    @property
    def findings(self) -> Sequence[Finding]: ...


Result = TypeVar("Result", bound=_HasFindings)


def warns_where_narrowed(function: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a function that returns a result with findings: one NarrowedWarning for those that narrow the domain."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> Result:
        result = function(*args, **kwargs)
        narrowing = [finding for finding in result.findings if finding.narrows]
        if narrowing:
            warn_caller(NarrowedWarning(*narrowing))
        return result

    return run


def warn_caller(warning: Warning) -> None:
    """Issue a warning at the line of the user's code that called anyshape, through however many functions of ours."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame.f_back is not None and _is_ours(frame.f_back.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level + 1)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OUR_FRAMES
