"""The files of a model: digests that show whether its result still holds, and copies that go to another machine.

A file below the working folder has the same relative path there; others lie in a folder `outside0`, `outside1`, ...
Of a model file, its Python neighbours travel too: files of its folder, and packages in it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from anyshape.batch.jobs import Job, local_path, split_source

_PACKAGES = ("anyshape", "torch", "onnxruntime", "onnx", "onnx-ir", "onnxscript", "numpy", "transformers", "timm")
_CHANGED = "changed while it was read"  # equals no digest
_MISSING = "missing"


def versions() -> dict[str, str]:
    """Of Python and of the packages that decide what a file looks like."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def key_of(job: Job, used: Mapping[str, str]) -> str:
    """The digest of what was asked for, and with which versions. Limits are no part of it: they change no file."""
    facts = {"source": job.source, "options": dict(job.options), "versions": dict(used), **_package_version(job.source)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _package_version(source: str) -> dict[str, str]:
    """The version of an installed package whose class is the source: `package.module:Class`."""
    package = source.partition(":")[0].partition(".")[0]
    if local_path(source) is not None or not package.isidentifier():
        return {}
    try:
        return {"package": metadata.version(package)}
    except metadata.PackageNotFoundError:
        return {}


def files_to_watch(job: Job, noted: str) -> set[Path]:
    """Files on which a result depends: the source, what the manifest lists, and what the process read and did not write."""
    named = [path for path in (local_path(job.source), *map(Path, job.files)) if path is not None]
    found = {each for path in named for each in files_below(path)}
    lines = noted.splitlines()
    written = {line[2:] for line in lines if line.startswith("w ")}
    for line in lines:
        if line.startswith("r ") and line[2:] not in written:
            path = _source_of(Path(line[2:]))
            if path.is_file():  # not a temporary file that is gone
                found.add(path)
    return {each.absolute() for each in found}


def files_below(path: Path) -> Iterator[Path]:
    """The file itself, or all files of a folder but caches and hidden ones."""
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.rglob("*")):
        parts = each.relative_to(path).parts
        if each.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield each


def _source_of(path: Path) -> Path:
    """The Python file behind its compiled form."""
    if path.suffix != ".pyc":
        return path
    try:
        return Path(importlib.util.source_from_cache(str(path)))
    except ValueError:
        return path


def digests_of(paths: Iterable[Path], began: float | None = None) -> dict[str, str]:
    """The digest of each file. One that was changed after `began`, a time of the clock, has none that lasts."""
    found = {}
    for path in sorted(paths):
        try:
            is_newer = began is not None and path.stat().st_mtime >= began
            found[str(path)] = _CHANGED if is_newer else file_digest(path)
        except OSError:
            found[str(path)] = _MISSING
    return found


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_unchanged(digests: Mapping[str, str]) -> bool:
    """Whether every file is as it was."""
    return digests_of(map(Path, digests)) == dict(digests)


@dataclass(frozen=True)
class Travelling:
    """A job as the other machine sees it, the files by their path there, and the folder here for each folder there."""

    job: Job
    files: dict[str, Path]
    folders: dict[str, str]

    @property
    def data_bytes(self) -> int:
        """The size of all files but Python's: of weights, mostly."""
        return sum(path.stat().st_size for path in self.files.values() if path.suffix != ".py")

    def place_of(self, path: Path) -> str:
        """The path there of a file that travels."""
        return next(place for place, own in self.files.items() if own == path.absolute())


def pack(job: Job) -> Travelling:
    """The files of a job. One that is missing is not copied: its export reports that."""
    here = Path.cwd()
    files: dict[str, Path] = {}
    folders = {"": str(here)}
    parts = split_source(job.source)
    source = job.source
    if parts.path is not None:
        path = _place(Path(parts.path).absolute(), here, folders)
        source = str(replace(parts, path=path))
        for each in _with_neighbours(Path(parts.path).absolute()):
            files[_place(each, here, folders)] = each
    for name in job.files:
        for each in files_below(Path(name).absolute()):
            files[_place(each, here, folders)] = each
    there = {place: path for place, path in files.items() if path.is_file()}
    return Travelling(replace(job, source=source, files=()), there, folders)


def _place(path: Path, here: Path, folders: dict[str, str]) -> str:
    """The path of a file on the other machine; a folder outside the working folder is added to `folders`."""
    path = Path(os.path.normpath(path))
    if path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    for there, known in folders.items():
        if there and path.is_relative_to(known):
            return f"{there}/{path.relative_to(known).as_posix()}"
    there = f"outside{len(folders) - 1}"
    folders[there] = str(path.parent)
    return f"{there}/{path.name}"


def _with_neighbours(path: Path) -> Iterator[Path]:
    if path.suffix != ".py":
        yield from files_below(path)
        return
    yield path
    yield from (each for each in path.parent.glob("*.py") if each != path)
    for folder in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
        if (folder / "__init__.py").is_file():
            yield from (each for each in files_below(folder) if each.suffix == ".py")


def returned(noted: str, root: str, folders: dict[str, str]) -> str:
    """Notes of files that were opened below `root` there, with their paths here; others are of no concern here."""
    lines = []
    for line in noted.splitlines():
        place = Path(line[2:])
        if not place.is_relative_to(root):
            continue
        inside = place.relative_to(root).as_posix()
        own = max((each for each in folders if each and inside.startswith(f"{each}/")), default="")
        rest = inside.removeprefix(f"{own}/") if own else inside
        lines.append(f"{line[:2]}{Path(folders[own]) / rest}")
    return "".join(f"{line}\n" for line in lines)
