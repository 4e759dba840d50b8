"""Whether a result still holds: digests of options and versions, and of every file that a model's process read."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from anyshape.batch.jobs import Job, local_path

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
