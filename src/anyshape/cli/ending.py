"""How the process ends: the result on stdout, or the reason on stderr (with --json on stdout, too), and a status."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anyshape.cli.output import show
from anyshape.findings import AnyshapeError, Finding, InternalError
from anyshape.report.plain import findings_as_plain


@dataclass(frozen=True)
class Ending:
    """Why a command ended without a result: the words for stderr, the exit status, and the findings for --json."""

    words: str
    status: int
    findings: Sequence[Finding] = ()

    def report(self, *, as_json: bool) -> int:
        """Write the words to stderr, and JSON to stdout if that was asked for; the status comes back."""
        sys.stderr.write(self.words.rstrip() + "\n")
        if as_json:
            told = str(self.findings[0]) if self.findings else self.words
            error = told.strip().partition("\n")[0]
            plain = findings_as_plain(self.findings)
            show({"kept": False, "status": self.status, "error": error, "findings": plain})
        return self.status


def end_by_error(error: AnyshapeError) -> Ending:
    """An error that we raised on purpose."""
    return Ending(str(error), error.exit_status, error.findings)


def end_by_arguments(message: str, shown: str) -> Ending:
    """Arguments that the parser refuses; `shown` is its own text, with the usage line."""
    finding = Finding(code="AS036", name="argument", what=message.strip().replace("\n", " "))
    return Ending(shown, 2, (finding,))


def end_by_our_fault(error: Exception) -> Ending:
    """An apology with the file to attach: never the user's fault."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="anyshape-report-", suffix=".txt", delete=False, encoding="utf-8"
    ) as report:
        report.write("".join(traceback.format_exception(error)))
    finding = Finding(
        code="AS901",
        name="internal-error",
        what=f"sorry, this is a fault of anyshape's own: {type(error).__name__}.",
        why=str(error).splitlines()[0] if str(error) else "",
        fix=f"please report it, with this file attached: {Path(report.name)}",
    )
    return end_by_error(InternalError(finding))
