"""What is said when a file cannot be written."""

from __future__ import annotations

import errno
import os
from os import PathLike, fspath
from pathlib import Path

from anyshape.findings import Finding
from anyshape.findings.paths import quoted

_NOTHING_WRITTEN = "Nothing was written, and what was there before is as it was."
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def missing_folder(path: str | PathLike[str]) -> Finding:
    """The folder is not there, and we do not make one that may be a slip of the finger."""
    return Finding(
        code="AS050",
        name="missing-folder",
        what=f"{fspath(path)!r} cannot be written: there is no folder {str(Path(path).parent)!r}.",
        fix=_make_folder(Path(path).parent),
    )


def _make_folder(folder: Path) -> str:
    """The command that makes the folder, where that is allowed."""
    nearest = next((above for above in folder.parents if above.exists()), Path())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return f"mkdir -p {quoted(str(folder))}"
    return f"name a folder that can be made: in {str(nearest)!r} none can."


def path_is_folder(path: str | PathLike[str]) -> Finding:
    """A folder has that name."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"{fspath(path)!r} cannot be written: it is a folder.",
        fix=f"name a file in it, such as {str(Path(path) / 'model.onnx')!r}.",
    )


def path_is_no_file(path: str | PathLike[str]) -> Finding:
    """A device, a pipe or a socket has that name."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"{fspath(path)!r} cannot be written: it is no ordinary file.",
        why="a file is written next to its place and then given its name, which would replace what is there.",
        fix="name an ordinary file.",
    )


def cannot_write(path: str | PathLike[str], error: OSError) -> Finding:
    """The system refused."""
    what = f"{fspath(path)!r} cannot be written"
    says = f"the system says: {error.strerror or error}."
    if error.errno in _FULL:
        return Finding(
            code="AS053",
            name="disk-full",
            what=f"{what}: the disk is full.",
            why=f"{says} {_NOTHING_WRITTEN}",
            fix="make room, or write to another disk.",
        )
    if error.errno in _FORBIDDEN:
        return Finding(
            code="AS052",
            name="no-permission",
            what=f"{what}: it is not allowed.",
            why=f"{says} {_NOTHING_WRITTEN}",
            fix="write to a folder of your own.",
        )
    return Finding(code="AS054", name="cannot-write", what=f"{what}.", why=f"{says} {_NOTHING_WRITTEN}")


def too_large(path: str | PathLike[str], size: int) -> Finding:
    """Even without its weights the model is more than protobuf can hold."""
    return Finding(
        code="AS055",
        name="model-too-large",
        what=f"{fspath(path)!r} cannot be written: its graph alone has {size} bytes.",
        why="an ONNX file has 2 GB at most, and only weights can lie in a second file.",
    )
