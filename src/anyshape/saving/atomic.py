"""Write files whole or not at all, and what the system says against it, in our words."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from anyshape.findings import Finding, UsageError
from anyshape.findings.finding import quoted
from anyshape.saving.leftovers import temporary_file
from anyshape.saving.outputs import Kind, check_replaceable

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


Writer = Callable[[BinaryIO], object]


def write_atomically(
    path: str | PathLike[str], writer: Writer, kind: Kind | None = None, *, is_edit: bool = False
) -> None:
    """Give `writer` a stream, and its bytes the path, where `check_replaceable` allows it. Raises UsageError if the system
    does not let us."""
    target = resolve(path)
    with reporting(path):
        check_replaceable(path, kind, is_edit=is_edit)
        with temporary_file(target.parent) as other:
            fill(other, writer)
            replace(other, target)


def check_writable(path: str | PathLike[str], kind: Kind | None = None) -> None:
    """Find out, before hours of work, that nothing can be written there. Leaves nothing behind."""
    target = resolve(path)
    with reporting(path):
        check_replaceable(path, kind)
        with temporary_file(target.parent) as other:
            fill(other, lambda stream: None)


def resolve(path: str | PathLike[str]) -> Path:
    """The real place of the file, behind links. Raises UsageError if it cannot be the place of a file."""
    with reporting(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise UsageError(path_is_folder(path))
        if target.exists() and not target.is_file():
            raise UsageError(path_is_no_file(path))
        if not target.parent.is_dir():
            raise UsageError(missing_folder(path))
        return target


@contextlib.contextmanager
def reporting(path: str | PathLike[str]) -> Iterator[None]:
    """The system's refusals in our own words."""
    try:
        yield
    except OSError as error:
        raise UsageError(cannot_write(path, error)) from error


def fill(path: Path, writer: Writer) -> None:
    """Write the writer's bytes to a temporary file; the disk really has them when this returns."""
    with path.open("r+b") as stream:
        writer(stream)
        stream.flush()
        os.fsync(stream.fileno())


def replace(source: Path, target: Path) -> None:
    """Give the source the target's name, and the permissions of the file that had it."""
    if target.exists():
        shutil.copymode(target, source)
    source.replace(target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Where a system can do it, the new name is on the disk, too; where it cannot, that is its own business."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
