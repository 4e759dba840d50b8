"""Folders that are written whole: their files are made in a folder beside, and get their places when all of them are there."""

from __future__ import annotations

import contextlib
import filecmp
import shutil
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path

from anyshape.findings import Finding, UsageError
from anyshape.saving.atomic import missing_folder, reporting
from anyshape.saving.data_files import data_files_of, discard_unmentioned
from anyshape.saving.leftovers import temporary_folder
from anyshape.saving.outputs import COMPANION, MODEL, check_replaceable, is_data_name, is_model

_MODEL_SUFFIX = ".onnx"


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

    A new folder gets its name in one step. In a folder that exists, files of the same names are replaced where
    `check_files` allows it, and all of them come back should one fail; other files are left alone. Raises UsageError if
    the system does not let us write.
    """
    with reporting(path):
        target = Path(path).resolve()
        if target.exists() and not target.is_dir():
            raise UsageError(path_is_a_file(path))
        if not target.parent.is_dir():
            raise UsageError(missing_folder(path))
        check_replaceable(path, None)
        with temporary_folder(target.parent) as other:
            yield other
            if target.is_dir():
                check_files(other, Path(path))
                _move_files(other, target)
            else:
                other.rename(target)


def check_files(source: Path, target: Path, models: Iterable[str] = ()) -> None:
    """Raise UsageError where a file of the source, or one of the models that are still to come, may not get its place.

    A file that is no model replaces one that differs only in a folder that has each of the models already: an earlier
    export wrote both.
    """
    names = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file()]
    made = {Path(name) for name in models} | {name for name in names if name.suffix == _MODEL_SUFFIX}
    is_earlier = all(is_model(target / name) for name in made)
    for name in sorted({*made, *names}):
        if name in made:
            check_replaceable(target / name, MODEL)
        elif not is_data_name(name.name) and not _is_same(source / name, target / name):
            check_replaceable(target / name, None if is_earlier else COMPANION)


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _move_files(source: Path, target: Path) -> None:
    """Give every file of the source its place in the target, or leave the target as it was.

    A model follows the files with its weights. A file that is there already, byte for byte, is left alone.
    """
    old = source / ".replaced"
    old.mkdir()
    names = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file()]
    names = [name for name in names if not _is_same(source / name, target / name)]
    names.sort(key=lambda name: name.suffix == _MODEL_SUFFIX)
    data = [target / name for name in names if is_data_name(name.name)]
    data += [each for name in names if (target / name).is_file() for each in data_files_of(target / name)]
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
    finally:
        discard_unmentioned(data)
