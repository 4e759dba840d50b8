"""Files that are there whole or not at all, also when the disk is full or somebody presses Ctrl-C.

What is written goes to a temporary file in the same folder, which takes the name of the real one at the very end. Only
a process that is killed, or a machine that loses its power, can leave a temporary file behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from anyshape.findings import UsageError
from anyshape.saving.messages import cannot_write, missing_folder, path_is_folder, path_is_no_file

Writer = Callable[[BinaryIO], object]


def write_atomically(path: str | PathLike[str], writer: Writer) -> None:
    """Give `writer` a stream, and its bytes the path. Raises UsageError if the system does not let us."""
    target = resolve(path)
    with reporting(path), temporary(target) as other:
        fill(other, writer)
        replace(other, target)


def check_writable(path: str | PathLike[str]) -> None:
    """Find out, before hours of work, that nothing can be written there. Leaves nothing behind."""
    target = resolve(path)
    with reporting(path), temporary(target) as other:
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


@contextlib.contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """The name of a file next to the target; whatever has that name in the end is removed."""
    other = target.parent / f".anyshape-{secrets.token_hex(8)}.tmp"
    try:
        yield other
    finally:
        other.unlink(missing_ok=True)


def fill(path: Path, writer: Writer) -> None:
    """A new file with the writer's bytes, which the disk really has when this returns."""
    # Not tempfile: its files can be read by their owner only, whatever the user's umask says.
    with path.open("xb") as stream:
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
