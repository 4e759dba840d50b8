"""Findings and the errors that carry them: the messages of anyshape.

This file: every error that anyshape raises on purpose, its one warning, and the usage errors about options with a wrong
word or number.

The exit status of the command line is a property of the class: 1 a promise is broken, 2 usage, 3 our own fault.

Files, in the order in which data flows:

    finding    the record Finding: code, what, where, why, fix; and its one renderer
    arguments  arguments of the Python functions, read by their types
"""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

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
P = ParamSpec("P")
T = TypeVar("T")
# contextlib's own frames lie between a function of ours and its caller where a context manager decorates the function.
_OUR_FRAMES = ("anyshape", "contextlib")


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

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback."""
        if _shows_tracebacks():
            raise NotImplementedError  # the notebook shows its own then
        return traceback.format_exception_only(self)


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


def _shows_tracebacks() -> bool:
    return os.environ.get("ANYSHAPE_TRACEBACK", "0") not in ("", "0")


def raises_for_caller(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function: tracebacks of the errors that it raises on purpose end at the caller's line.

    `ANYSHAPE_TRACEBACK=1` in the environment keeps the frames of anyshape. An `InternalError` has them always.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except InternalError:
            raise
        except AnyshapeError as error:
            if _shows_tracebacks():
                raise
            error.__suppress_context__ = True
            raised = error.with_traceback(None)
        raise raised

    return run


def warn_caller(warning: Warning) -> None:
    """Issue a warning at the line of the user's code that called anyshape, through however many functions of ours."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] in _OUR_FRAMES:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level + 1)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise UsageError (AS060) unless `value` is one of `choices`; `name` is the option as the user writes it."""
    if isinstance(value, str) and value in choices:
        return
    near = nearest_choice(value, choices) if isinstance(value, str) else None
    shown = repr(value) if isinstance(value, (int, float, str, type(None))) else f"a {type(value).__name__}"
    raise UsageError(
        Finding(
            code="AS060",
            name="unknown-choice",
            what=f"{name} cannot be {shown}.",
            why=f"the choices are {', '.join(map(repr, choices))}.",
            fix=f"did you mean {near!r}?" if near else "",
        )
    )


def check_number(name: str, value: Any, example: float, *, whole: bool = False) -> None:
    """Raise UsageError (AS066) unless `value` is a number that is not negative; `whole`: an integer of any sign."""
    kind = Integral if whole else Real
    if isinstance(value, kind) and not isinstance(value, bool) and (whole or float(value) >= 0):
        return
    shown = repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__
    raise UsageError(
        Finding(
            code="AS066",
            name="not-a-number",
            what=f"{name} cannot be {shown}.",
            why="it is a whole number." if whole else "it is a number, 0 or more.",
            fix=f"{name}={example}",
        )
    )


def check_numbers(seed: int, **options: float | None) -> None:
    """Raise UsageError (AS066) unless the seed is whole, and every option that is given a number that is not negative."""
    check_number("seed", seed, 0, whole=True)
    for name, value in options.items():
        if value is not None:
            check_number(name, value, 1e-3 if name in ("rtol", "atol") else 60)


def nothing_to_force(why: str) -> Finding:
    """AS061, a note: `force` writes files whose promise is broken, and there is no such file."""
    return Finding(
        code="AS061",
        name="nothing-to-force",
        severity=Severity.NOTE,
        what="force had nothing to do.",
        why=f"it writes a file that breaks its promise; {why}",
    )


def nothing_to_enforce(bounds: str) -> Finding:
    """AS067, a note: no input has bounds of values that the graph could check. `bounds` is an example of some."""
    return Finding(
        code="AS067",
        name="nothing-to-enforce",
        severity=Severity.NOTE,
        what="enforce_values had nothing to do: no input has bounds of its values.",
        why="it checks bounds that are declared or were learned, and there are none in the contract.",
        fix=f"declare which values inputs have, such as values={{{bounds}}}",
    )


def nearest_choice(value: Any, choices: Sequence[str]) -> str | None:
    """The choice that is spelt most like the value, in any case of letters; None if none is close."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(str(value).strip().lower(), list(by_lower), n=1)
    return by_lower[near[0]] if near else None


def nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that is spelt nearly alike, else the only one that has the name in it; None if there is none."""
    alike = get_close_matches(name, candidates, n=1)
    if alike:
        return alike[0]
    holding = [candidate for candidate in candidates if len(name) > 1 and name in candidate]
    return holding[0] if len(holding) == 1 else None


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 axis`, `2 axes`."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
