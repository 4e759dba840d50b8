"""Findings about a process that ended without a result."""

from __future__ import annotations

import linecache
import sysconfig
from itertools import takewhile
from pathlib import Path

from anyshape.findings import Finding, Source
from anyshape.findings.finding import PACKAGE_FOLDER, shorten
from anyshape.processes.deaths import Death
from anyshape.processes.forked import run_child

_MORE_TIME = "give it more time: time_limit=... (--time-limit)."


def process_ended(death: Death, stage: str) -> Finding:
    """The process of an export, a check or the like is gone, and no result came back."""
    line = user_line(death)
    if not death.signal:
        return Finding(
            code="AS062",
            name="model-exits",
            what=f"the model's own code ended the process: os._exit({death.status}).",
            where=line,
            why="a model file is imported, and its functions are called: nothing in them may end the process.",
        )
    return Finding(
        code="AS160",
        name="process-ended",
        what=f"the process was ended by {death.signal}, twice.",
        where=line,
        why=f"{death}" + (f"; it happened while {stage}." if stage else "."),
        fix="free some memory, or look for what ends it with ANYSHAPE_ISOLATE=0 and a debugger.",
        is_fix_untried=True,
    )


def stopped_from_outside(seconds: float, stage: str, death: Death) -> Finding:
    """The time was over, and the process did not end by itself: it waited, or was inside one long call."""
    line = user_line(death)
    return Finding(
        code="AS140",
        name="out-of-time",
        what=f"it did not end within {seconds:g} s.",
        where=line,
        why=f"it was ended while {stage}." if stage else "",
        fix=_MORE_TIME,
        is_fix_untried=True,
    )


def user_line(death: Death) -> Source | None:
    """The innermost line of the process's own work that is not of torch, of this package or of Python itself."""
    work = takewhile(lambda frame: not _begins_process(frame), death.frames)
    frame = next((each for each in work if _may_be_users(each.file)), None)
    if frame is None:
        return None
    text = linecache.getline(frame.file, frame.line).strip()
    return Source(file=shorten(frame.file), line=frame.line, function=frame.function, text=text)


def _begins_process(frame: Source) -> bool:
    """Whether the frames beyond it are those of the caller, which the fork has inherited."""
    return frame.function == run_child.__name__ and Path(frame.file) == Path(run_child.__code__.co_filename)


def _may_be_users(file: str) -> bool:
    path = Path(file)
    standard = Path(sysconfig.get_path("stdlib"))
    is_installed = bool({"site-packages", "dist-packages"}.intersection(path.parts))
    if file.startswith("<") or path.is_relative_to(PACKAGE_FOLDER) or "torch" in path.parts:
        return False
    return is_installed or not path.is_relative_to(standard)
