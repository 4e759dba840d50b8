"""The folder for the temporary files of one process: its caller removes it, however the process ends.

A caller that is killed leaves its folders behind; the next caller removes those whose process is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

import psutil

_NAME = re.compile(r"anyshape-run-(\d+)-")


def make_folder() -> Path:
    """A new folder; those of callers that have ended are removed."""
    home = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for entry in os.scandir(home):
            match = _NAME.match(entry.name)
            if match is not None and not psutil.pid_exists(int(match[1])):
                shutil.rmtree(entry.path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"anyshape-run-{os.getpid()}-", dir=home))


def use_folder(folder: Path) -> None:
    """Let this process, and those that it starts, write their temporary files there."""
    tempfile.tempdir = str(folder)
    os.environ["TMPDIR"] = str(folder)
