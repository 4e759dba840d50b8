"""The files of a model that travel to another machine: which they are, and where they lie there.

A file below the working folder has the same relative path there; others lie in a folder `outside0`, `outside1`, ...
Of a model file, its Python neighbours travel too: files of its folder, and packages in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from anyshape.batch.jobs import Job, split_source
from anyshape.batch.model_digest import files_below


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
    """The files of a job. One that is missing does not travel: its export says so."""
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
