"""Temporary files and folders beside an output, and the removal of those whose writer was killed.

A writer holds a lock on its file as long as it lives; the system releases it however the process ends. So a file without
a lock is a leftover. A number of a process in its name would not show that: another container, or another machine that
writes to the same folder, numbers its processes otherwise. Where a file system has no locks, leftovers stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from anyshape.saving.data_files import data_files_of, discard_unmentioned

try:
    import fcntl
except ImportError:  # Windows: a file that is open cannot be renamed there, so nothing can be locked
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\.anyshape-[0-9a-f]{16}\.tmp")


@contextlib.contextmanager
def temporary_file(folder: Path) -> Iterator[Path]:
    """An empty file with the rights of any new file; if it still has its name in the end, it is removed."""
    # Not tempfile: its files can be read by their owner only, whatever the user's umask says.
    with _locked(folder, lambda path: os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)) as path:
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary_folder(folder: Path, mode: int = 0o777) -> Iterator[Path]:
    """An empty folder; if it still has its name in the end, it is removed with all that is in it."""

    def make(path: Path) -> int | None:
        path.mkdir(mode)
        return os.open(path, os.O_RDONLY) if fcntl is not None else None

    with _locked(folder, make) as path:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, make: Callable[[Path], int | None]) -> Iterator[Path]:
    """The path of something new that `make` opens, locked until the block ends."""
    remove_leftovers(folder)
    while True:
        path = folder / f".anyshape-{secrets.token_hex(8)}.tmp"
        try:
            handle = make(path)
        except FileNotFoundError:
            if not folder.is_dir():
                raise
            continue  # another process took the folder for a leftover before it was open
        if fcntl is None or handle is None:
            if handle is not None:
                os.close(handle)
            yield path
            return
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, handle)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(handle, path):  # else another process took it for a leftover before it was locked
                yield path
                return


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed left in the folder. What a living one is writing is locked, and stays."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for path in [each for each in folder.iterdir() if _NAME.fullmatch(each.name)]:
            with contextlib.suppress(OSError):  # locked, gone meanwhile, or not ours
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    is_folder = path.is_dir() and not path.is_symlink()
    handle = os.open(path, os.O_NOFOLLOW | (os.O_RDONLY if is_folder else os.O_RDWR))
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(handle, path):
            return
        if is_folder:
            shutil.rmtree(path, ignore_errors=True)
            return
        data = data_files_of(path)  # its writer may have been killed after it placed the weights
        path.unlink()
        discard_unmentioned(data)
