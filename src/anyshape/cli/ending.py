"""How the process ends: a last word on stderr, and a status."""

from __future__ import annotations

import functools
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyshape.findings import Finding, InternalError


class Interrupted(Exception):
    """Ctrl-C, as an error of ours: each version of typer does something else with Python's own."""


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """The command, its KeyboardInterrupt turned into Interrupted once everything is cleaned up."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    return run


def ended(words: str, status: int) -> int:
    """Say the words on stderr, give back the status."""
    sys.stderr.write(words.rstrip() + "\n")
    return status


def our_fault(error: Exception) -> str:
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
    return str(InternalError(finding))
