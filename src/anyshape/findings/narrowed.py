"""The warning for a file whose contract is smaller than the declared domain."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from anyshape.findings.finding import Finding
from anyshape.findings.render import render_all

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
