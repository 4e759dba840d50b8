"""Folders that are written whole or not at all: filled under another name, then moved into their place."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from anyshape.findings import Finding, UsageError
from anyshape.saving.atomic import missing_folder, reporting


def path_is_a_file(path: str | PathLike[str]) -> Finding:
    """A file has the name that a folder should get."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"the folder {fspath(path)!r} cannot be written: a file has that name.",
        fix="name a folder, or a path where nothing is yet.",
    )


@contextlib.contextmanager
def writing_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """An empty folder next to `path`, whose files are in the place `path` when the block ends without an error.

    A new folder gets its name in one step. In a folder that exists, files of the same names are replaced, and all of them
    come back should one fail; other files are left alone. Raises UsageError if the system does not let us write.
    """
    target = Path(path).resolve()
    with reporting(path):
        if target.exists() and not target.is_dir():
            raise UsageError(path_is_a_file(path))
        if not target.parent.is_dir():
            raise UsageError(missing_folder(path))
        other = target.parent / f".anyshape-{secrets.token_hex(8)}.tmp"
        other.mkdir()
    try:
        yield other
        with reporting(path):
            if target.is_dir():
                _move_files(other, target)
            else:
                other.rename(target)
    finally:
        shutil.rmtree(other, ignore_errors=True)


def _move_files(source: Path, target: Path) -> None:
    """Give every file of the source its place in the target, or leave the target as it was."""
    old = source / ".replaced"
    old.mkdir()
    names = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file()]
    done: list[Path] = []
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if (target / name).exists():
                (old / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(target / name, old / name)
            done.append(name)
            (source / name).replace(target / name)
    except BaseException:
        for name in done:
            if (old / name).exists():
                (old / name).replace(target / name)
            elif not (source / name).exists():
                (target / name).unlink(missing_ok=True)
        raise
