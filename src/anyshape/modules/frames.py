"""Which line of the user's own code is running: from a traceback, from the running stack, from torch's stack text.

A frame is the user's unless it lies in torch, in anyshape or in the standard library; a model library such as
transformers is the user's code in this sense, since its lines are what stands in the way.

Two marks in a module of anyshape, which move with it to another file:
    __is_entrance__ = True        a conversion begins here: the callers of its functions are not the model
    __only_passes_on__ = True     its functions hand on to torch what their caller does: a question of theirs is the caller's
"""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType

from anyshape.findings import Source
from anyshape.findings.finding import PACKAGE_FOLDER, shorten

_TOOLS = ("einops", "numpy", "scipy")  # what a model computes with: the line that calls them is the user's
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def _foreign_folders() -> tuple[str, ...]:
    import torch

    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return (
        str(Path(torch.__file__).parent),
        str(PACKAGE_FOLDER),
        *(str(Path(folder)) for folder in standard),
    )


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file holds the user's own code, rather than torch's, ours or Python's."""
    if file.startswith(("<", "torch/")):
        return False
    site_packages = sysconfig.get_path("purelib")
    if file.startswith(site_packages):  # lies inside the standard library's folder on some systems
        torch_folder, our_folder = _foreign_folders()[:2]
        tools = [str(Path(site_packages) / name) for name in _TOOLS]
        return not file.startswith((torch_folder, our_folder, *tools))
    return not file.startswith(_foreign_folders())


def make_source(file: str, line: int, function: str = "") -> Source:
    """A source line with its text, its file as short as possible from the current folder."""
    text = linecache.getline(file, line).strip()
    return Source(file=shorten(file), line=line, function=function, text=text)


def source_of_error(error: BaseException) -> Source | None:
    """The deepest line of the user's code in an error's traceback; None when there is none."""
    found: Source | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _is_entrance(traceback.tb_frame):
            found = None
        elif is_users(code.co_filename):
            found = make_source(code.co_filename, traceback.tb_lineno, code.co_qualname)
        traceback = traceback.tb_next
    return found


def source_of_running_code(depth: int = 1) -> Source | None:
    """The innermost line of the user's model on the running stack; None when there is none.

    Whoever called us is further out than our own stages, and no part of the model.
    """
    for frame in _frames_outwards(sys._getframe(depth)):
        code = frame.f_code
        if _is_entrance(frame):
            return None
        if is_users(code.co_filename):
            return make_source(code.co_filename, frame.f_lineno, code.co_qualname)
    return None


def source_of_stack_text(text: str | None) -> Source | None:
    """The innermost line of the user's code in a formatted stack, as torch keeps it on graph nodes."""
    for match in reversed(list(_STACK_LINE.finditer(text or ""))):
        if is_users(match["file"]):
            return make_source(match["file"], int(match["line"]), match["function"])
    return None


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of anyshape."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def only_passes_on(frame: FrameType) -> bool:
    """Whether a frame runs code of anyshape that hands on to torch what its caller does."""
    return is_ours(frame) and frame.f_globals.get("__only_passes_on__", False)


def _is_entrance(frame: FrameType) -> bool:
    return is_ours(frame) and frame.f_globals.get("__is_entrance__", False)


def _frames_outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
