"""A job is one model of a batch: its source, its options, its limits, and the name of the folder with its results."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anyshape.batch.model_limits import DEFAULT_TIME_S
from anyshape.findings import Finding, UsageError

_PYTHON = re.compile(r"(.+\.py)(:[^\W\d]\w*)?", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+:)(.+)", re.DOTALL)  # two letters at least: not the C: of a path
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # no names of files on Windows
_LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True)
class Job:
    """One model. `options` are those of `anyshape export`; `files` travel with the source to other machines.

    `memory_limit` counts the whole process tree; None: a share of the machine's memory.
    """

    source: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    time_limit: float = DEFAULT_TIME_S
    memory_limit: int | None = None
    cpus: float = 1.0
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitSource:
    """A source in parts: `model.py:Net` is ("", model.py, ":Net"), `hf:./tiny` is ("hf:", ./tiny, ""). No path: elsewhere."""

    before: str
    path: str | None
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.path or ''}{self.after}"


def split_source(source: str, folder: Path | None = None) -> SplitSource:
    """The parts of a source. A scheme's path is one if it exists, seen from `folder`."""
    if (python := _PYTHON.fullmatch(source)) is not None:
        return SplitSource("", python[1], python[2] or "")
    scheme = _SCHEME.fullmatch(source)
    if scheme is not None and (folder or Path()).joinpath(scheme[2]).exists():
        return SplitSource(scheme[1], scheme[2])
    return SplitSource(source, None)


def is_python_file(source: str) -> bool:
    """Whether a source is `model.py` or `model.py:NAME`."""
    return _PYTHON.fullmatch(source) is not None


def local_path(source: str) -> Path | None:
    """The file or folder of this machine that a source names; None for an id or an installed class."""
    path = split_source(source).path
    return None if path is None else Path(path)


def seen_from_here(source: str, folder: Path) -> str:
    """The source with its path, which is relative to `folder`, relative to the working folder."""
    parts = split_source(source, folder)
    return source if parts.path is None else str(replace(parts, path=path_from_here(parts.path, folder)))


def path_from_here(path: str, folder: Path) -> str:
    """A path that is relative to `folder`, relative to the working folder; absolute on another drive of Windows."""
    target = folder / path
    if Path(path).is_absolute():
        return path
    try:
        return os.path.relpath(target)
    except ValueError:
        return str(target.absolute())


def with_names(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs with a name each, no two alike even where the system ignores case. Raises UsageError for one model twice."""
    named = [job if job.name else replace(job, name=readable_name(job.source)) for job in jobs]
    counts = Counter(job.name.casefold() for job in named)
    unique = [
        replace(new, name=f"{new.name}-{_fingerprint(new)}")
        if not old.name and counts[new.name.casefold()] > 1
        else new
        for old, new in zip(jobs, named, strict=True)
    ]
    _check_names(unique)
    return tuple(unique)


def readable_name(source: str) -> str:
    """The name of a folder that shows its source: `bert/model.py:Net` -> `bert-model-Net`, `hf:org/tiny` -> `hf-org-tiny`."""
    parts = split_source(source)
    if parts.path is None:
        words = [parts.before]
    else:
        path = Path(os.path.normpath(parts.path))
        folders = [each for each in path.parent.parts[-1:] if each not in ("..", path.anchor)]
        words = [parts.before, *folders, path.stem if path.suffix == ".py" else path.name, parts.after]
    name = "-".join(word for each in words if (word := _NOT_IN_NAMES.sub("-", each).strip("-.")))[:_LONGEST_NAME]
    return f"{name}-model" if _RESERVED.fullmatch(name) else name or "model"


def check_name(name: str) -> str | None:
    """Why a name that a user chose cannot be that of a folder; None if it can."""
    if not name or len(name) > _LONGEST_NAME or _NOT_IN_NAMES.search(name) or name[0] in ".-" or name[-1] == ".":
        return f"{name!r} is no name of a folder: letters, digits, '.', '_' and '-', {_LONGEST_NAME} at most"
    return f"{name!r} is reserved on Windows" if _RESERVED.fullmatch(name) else None


def _fingerprint(job: Job) -> str:
    facts = json.dumps([job.source, job.options], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()[:8]


def _check_names(jobs: Iterable[Job]) -> None:
    seen: dict[str, Job] = {}
    for job in jobs:
        other = seen.setdefault(job.name.casefold(), job)
        if other is job:
            continue
        is_same = (other.source, other.options) == (job.source, job.options)
        raise UsageError(
            Finding(
                code="AS548",
                name="same-model-twice",
                what=f"{job.source!r} is given twice with the same options."
                if is_same
                else f"{other.source!r} and {job.source!r} would both be written to the folder {job.name!r}.",
                fix="leave one of them out." if is_same else f"give one of them another name, such as '{job.name}-2'.",
            )
        )
