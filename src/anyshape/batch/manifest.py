"""MANIFEST.toml -> jobs. What is wrong in it is named with its table, its key and its line.

output = "exported"           # a folder; -o overrides it
[defaults]                    # for every model
time_limit = "10m"
[[model]]
source = "bert.py"            # paths are relative to the manifest
where = ["1 <= batch <= 64"]
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.batch.jobs import (
    DEFAULT_TIME_S,
    EXPORT_OPTIONS,
    Job,
    check_name,
    parse_bytes,
    parse_duration,
    path_from_here,
    read_option,
    seen_from_here,
    with_names,
)
from anyshape.findings import Finding, UsageError

_TOP = ("output", "jobs", "defaults", "model")
_LIMITS = ("time_limit", "memory_limit", "cpus")
_OWN = ("source", "name", "files")
_LINE = re.compile(r"at line (\d+)")
_TABLE = re.compile(r"\s*(\[{1,2})\s*([\w.-]+)\s*\]{1,2}")
_NO_TABLE = ("", 0)


@dataclass(frozen=True)
class Manifest:
    """A manifest, read: the jobs, and the options of the run as a whole."""

    jobs: tuple[Job, ...]
    output: Path | None = None
    workers: int | None = None


class _Refused(Exception):
    """What is wrong, at a key of a table: `place` is ("model", 2) for the third [[model]]."""

    def __init__(self, place: tuple[str, int], key: str, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.place, self.key, self.problem, self.fix = place, key, problem, fix


def read_manifest(path: Path, given: Mapping[str, Any] | None = None) -> Manifest:
    """The jobs of a manifest; `given` are keys that replace its own. Raises UsageError (AS540) with the line and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        what = f"there is no file {str(path)!r}."
        raise UsageError(Finding(code="AS040", name="missing-file", what=what, fix="check the path.")) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(_unreadable(path, f"it cannot be read: {error}.")) from error
    try:
        return _read(tomllib.loads(text), path, _checked(given or {}))
    except RecursionError as error:
        raise UsageError(_unreadable(path, "its values are nested too deep.")) from error
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise UsageError(_unreadable(path, f"{error}.", int(line[1]) if line else None)) from error
    except _Refused as refused:
        line_number = _find_line(text, refused.place, refused.key)
        raise UsageError(_wrong(path, refused, line_number)) from refused


def jobs_of(models: Iterable[str | Mapping[str, Any]], defaults: Mapping[str, Any]) -> tuple[Job, ...]:
    """Jobs of sources, or of dicts with the keys of [[model]]; `defaults` are those of [defaults]. Raises UsageError."""
    tables = [{"source": each} if isinstance(each, str) else each for each in models]
    shared = _checked(defaults)
    try:
        jobs = [job_of({**shared, **each}, place=("model", index)) for index, each in enumerate(tables)]
    except _Refused as refused:
        raise UsageError(_wrong(None, refused, None)) from refused
    return with_names(jobs)


def _checked(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options that a caller gives for all models. Raises UsageError."""
    try:
        _check_defaults(given, _NO_TABLE)
    except _Refused as refused:
        raise UsageError(_wrong(None, refused, None)) from refused
    return given


def _check_defaults(table: Mapping[str, Any], place: tuple[str, int]) -> None:
    _check_keys(table, (*_LIMITS, *EXPORT_OPTIONS), place)
    _options(table, place)
    _limits(table, place)


def job_of(table: Mapping[str, Any], *, place: tuple[str, int] = _NO_TABLE, folder: Path | None = None) -> Job:
    """The job that a table describes; `folder` is what its paths are relative to. Raises _Refused, or UsageError."""
    _check_keys(table, (*_OWN, *_LIMITS, *EXPORT_OPTIONS), place)
    source = table.get("source")
    if not isinstance(source, str) or not source.strip():
        raise _Refused(place, "source", "a model needs its source, a text.", 'source = "model.py"')
    name = table.get("name", "")
    if "name" in table and (not isinstance(name, str) or (why := check_name(name))):
        raise _Refused(place, "name", f"{why if isinstance(name, str) else f'{name!r} is no text'}.")
    base = folder or Path()
    return Job(
        source=seen_from_here(source, base),
        name=name,
        options=_options(table, place),
        files=tuple(path_from_here(each, base) for each in _texts(table, "files", place)),
        **_limits(table, place),
    )


def _read(content: Mapping[str, Any], path: Path, given: Mapping[str, Any]) -> Manifest:
    _check_keys(content, _TOP, _NO_TABLE)
    defaults = content.get("defaults", {})
    models = content.get("model", [])
    if not isinstance(defaults, dict):
        raise _Refused(_NO_TABLE, "defaults", "'defaults' is a table.", "[defaults]")
    if not isinstance(models, list) or not models or not all(isinstance(each, dict) for each in models):
        raise _Refused(_NO_TABLE, "model", "there is no model in it.", '[[model]]\nsource = "model.py"')
    _check_defaults(defaults, ("defaults", 0))
    workers = content.get("jobs")
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise _Refused(_NO_TABLE, "jobs", f"{workers!r} is no number of workers.", "jobs = 2")
    output = content.get("output")
    if output is not None and not isinstance(output, str):
        raise _Refused(_NO_TABLE, "output", f"{output!r} is no folder.", 'output = "exported"')
    folder = path.parent
    tables = [{**defaults, **each, **given} for each in models]
    jobs = [job_of(each, place=("model", index), folder=folder) for index, each in enumerate(tables)]
    return Manifest(with_names(jobs), None if output is None else folder / output, workers)


def _check_keys(table: Mapping[str, Any], known: Iterable[str], place: tuple[str, int]) -> None:
    names = list(known)
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(names)}."
            raise _Refused(place, key, "there is no such key.", fix)


def _options(table: Mapping[str, Any], place: tuple[str, int]) -> dict[str, Any]:
    found = {}
    for key, value in table.items():
        if key in EXPORT_OPTIONS:
            try:
                found[key] = read_option(key, value)
            except ValueError as error:
                raise _Refused(place, key, f"{error}.") from error
    return found


def _limits(table: Mapping[str, Any], place: tuple[str, int]) -> dict[str, Any]:
    cpus = table.get("cpus", 1.0)
    if not isinstance(cpus, (int, float)) or isinstance(cpus, bool) or cpus <= 0:
        raise _Refused(place, "cpus", f"{cpus!r} is no number of processors.", "cpus = 2")
    found: dict[str, Any] = {"cpus": float(cpus)}
    for key, parse in (("time_limit", parse_duration), ("memory_limit", parse_bytes)):
        try:
            found[key] = parse(table[key]) if key in table else DEFAULT_TIME_S if key == "time_limit" else None
        except ValueError as error:
            raise _Refused(place, key, f"{error}.") from error
    return found


def _texts(table: Mapping[str, Any], key: str, place: tuple[str, int]) -> list[str]:
    texts = table.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise _Refused(place, key, f"{texts!r} is no list of paths.", f'{key} = ["weights.pt"]')
    return texts


def _find_line(text: str, place: tuple[str, int], key: str) -> int | None:
    """The line of a key, or of its table's header where the key is missing; None where the file is laid out otherwise."""
    count, current, header = -1, _NO_TABLE, None
    for number, line in enumerate(text.splitlines(), start=1):
        if (table := _TABLE.match(line)) is not None:
            is_listed = table[1] == "[["
            count += is_listed
            current = (table[2], count if is_listed else 0)
            header = number if current == place else header
        elif current == place and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    return header


def _unreadable(path: Path, why: str, line: int | None = None) -> Finding:
    return Finding(
        code="AS540",
        name="manifest",
        what=f"{str(path)!r} is no manifest of models.",
        where=f"{path}:{line}" if line else str(path),
        why=why,
        fix='[[model]]\nsource = "model.py"',
        is_fix_untried=True,
    )


def _wrong(path: Path | None, refused: _Refused, line: int | None) -> Finding:
    table, index = refused.place
    inside = f" of [[model]] number {index + 1}" if table == "model" else f" of [{table}]" if table else ""
    return Finding(
        code="AS540",
        name="manifest",
        what=f"key {refused.key!r}{inside}: {refused.problem}",
        where=None if path is None else f"{path}:{line}" if line else str(path),
        fix=refused.fix,
        is_fix_untried=bool(refused.fix) and "=" in refused.fix,
    )
