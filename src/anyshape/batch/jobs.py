"""A job is one model of a batch: its source, its folder's name, its options for `export`, and its limits (`10m`, `4GB`).

An option that `export` gains gets one line here; a test compares the two.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anyshape.findings import Finding, UsageError
from anyshape.runtime.process import physical_memory

_PYTHON = re.compile(r"(.+\.py)(:[^\W\d]\w*)?", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+:)(.+)", re.DOTALL)  # two letters at least: not the C: of a path
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # no names of files on Windows
_LONGEST_NAME = 80

DEFAULT_TIME_S = 600.0
TEXT, NUMBER, WHOLE, FLAG, TEXTS, DURATION = (
    "a text",
    "a number",
    "a whole number",
    "true or false",
    "texts",
    "duration",
)
EXPORT_OPTIONS: Mapping[str, str] = {
    "where": TEXTS,
    "opset": WHOLE,
    "force": FLAG,
    "enforce": TEXT,
    "enforce_values": FLAG,
    "target": TEXT,
    "strip_source": FLAG,
    "budget": DURATION,
    "verify": TEXT,
    "rtol": NUMBER,
    "atol": NUMBER,
    "seed": WHOLE,
    "values": TEXT,
    "strategy": TEXT,
    "accept_narrower": FLAG,
    "thorough": FLAG,
    "state": TEXT,
    "random": TEXT,
    "repair": FLAG,
    "task": TEXT,
    "config_only": FLAG,
    "one_file": FLAG,
    "trust_remote_code": FLAG,
}
_CHOICES = {"enforce": ("graph", "load"), "verify": ("quick", "none"), "state": ("outputs", "frozen")}
GRACE_S = 5.0  # an export ends by itself at its time limit; a process that does not is killed so much later
_USED_BY_MODELS = 0.9
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i)?)?(?:b|bytes?)?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


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


def read_option(name: str, value: Any) -> Any:
    """The value in its plain form. Raises ValueError, in words that follow the option's name."""
    kind = EXPORT_OPTIONS[name]
    if kind == TEXTS:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"{value!r} is no list of texts")
        return list(texts)
    if kind == DURATION:
        parse_duration(value)
        return str(value)
    is_right = {
        FLAG: isinstance(value, bool),
        TEXT: isinstance(value, str),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: isinstance(value, (int, float)) and not isinstance(value, bool),
    }[kind]
    if not is_right:
        raise ValueError(f"{value!r} is not {kind}")
    if value not in _CHOICES.get(name, (value,)):
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, _CHOICES[name]))}")
    return value


def as_arguments(options: Mapping[str, Any]) -> Iterator[str]:
    """The options as words of a command line: `--opset=18`, `--where=1 <= batch`."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value is not False:
            yield from (f"{option}={each}" for each in (value if isinstance(value, list) else [value]))


def parse_duration(value: object) -> float:
    """Seconds of `60s`, `5m`, `1.5h` or a number of seconds. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"{value!r} is no duration, such as '60s' or '10m'")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_bytes(value: object) -> int:
    """Bytes of `4GB`, `500 MiB` or a number of bytes. Raises ValueError for anything else."""
    match = _BYTES.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"{value!r} is no amount of memory, such as '4GB' or '500MB'")
    power = _POWERS[match[2].lower()] if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def machine_memory() -> int | None:
    """Bytes of memory that processes may have here: the machine's, or the container's where that is less."""
    machine = physical_memory()
    try:
        container = int(_CGROUP.read_text())
    except (OSError, ValueError):
        return machine
    return container if machine is None else min(machine, container)


def share_of_memory(jobs: int) -> int | None:
    """The memory limit of a model that has none of its own: nine tenths of the machine, divided by the workers."""
    memory = machine_memory()
    return None if memory is None else int(memory * _USED_BY_MODELS / jobs)


def memory_not_measured() -> Finding:
    """A limit is asked for on a system that lists no processes."""
    return Finding(
        code="AS544",
        name="memory-not-measured",
        what="memory_limit cannot be kept here: this system lists no processes under /proc.",
        why="the memory of a model is that of its process and of all processes that it starts.",
        fix="pip install psutil",
    )
