"""What the system refuses to a command, as findings: a full disk, a name that is too long, a working folder that is gone."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from anyshape.findings import Finding, UsageError

# Errors that lie in the system or in a path that was given, whatever code meets them first.
_OF_THE_SYSTEM = ("EACCES", "EDQUOT", "EIO", "ELOOP", "EMFILE", "ENAMETOOLONG", "ENFILE", "ENOSPC", "EPERM", "EROFS")


class StdoutRefused(OSError):
    """Stdout cannot be written, for another reason than a reader who has gone."""


def check_working_folder() -> None:
    """Raise UsageError where the working folder was removed: no relative path leads anywhere then."""
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError(
            Finding(
                code="AS073",
                name="system-refuses",
                what="the working folder cannot be used: it was removed, or may not be read.",
                why=f"the system says: {error.strerror or error}.",
                fix="cd to a folder that is there, and run the command again.",
            )
        ) from error


def system_refuses(error: OSError) -> Finding | None:
    """What the system refuses, for an error that no code expected; None for one that may be a fault of ours."""
    if errno.errorcode.get(error.errno or 0) not in _OF_THE_SYSTEM and "usable temporary directory" not in str(error):
        return None
    says = f"the system says: {error.strerror or error}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Finding(
            code="AS053",
            name="disk-full",
            what=f"{_named(error) or 'a temporary file'} cannot be written: the disk is full.",
            why=f"{says} Temporary files lie in {os.environ.get('TMPDIR') or tempfile.gettempdir()!r}.",
            fix="make room, or name another folder for temporary files: TMPDIR=FOLDER",
        )
    return Finding(
        code="AS073",
        name="system-refuses",
        what=f"{_named(error) or 'a file'} cannot be used: {error.strerror or error}.",
        fix="name another path, or change what the system allows.",
    )


def _named(error: OSError) -> str:
    name = error.filename
    return repr(os.fsdecode(name)) if isinstance(name, (str, bytes)) else ""


def stdout_refused(error: OSError, written: Sequence[Path]) -> Finding:
    """The result cannot be printed. What the command wrote into files is there."""
    files = ", ".join(repr(str(path)) for path in written)
    return Finding(
        code="AS074",
        name="stdout",
        what="the result cannot be written to stdout.",
        why=f"the system says: {error.strerror or error}. {f'{files} was written before' if files else 'No file was written'}.",
        fix="send stdout elsewhere, and run the command again.",
    )
