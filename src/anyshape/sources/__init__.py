"""Models by their names: `hf:DIR`, `timm:NAME`, `model.py`, `package.module:Class`, or what a package registers.

This file: SOURCES: a text -> its kind -> the loaded source; and the export of every model of a source.

from anyshape import sources
sources.export("hf:DIR", "out")

"hf:DIR"  ->  HUGGING_FACE.load("DIR")      "model.py"  ->  MODEL_FILE.load("model.py")

A kind is one file and its line in SOURCES. Other packages register theirs by an entry point of the group
`anyshape.sources`: its name is the prefix, its object a SourceKind.

Files, in the order in which data flows:

    source         the records ModelSource, Part, SourceKind; findings about sources
    model_file     FILE.py, package.module:Class
    timm_models    timm:NAME; which sides of an image may vary
    hugging_face/  hf:PATH_OR_ID
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint, entry_points
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import anyshape.sources.source as say
from anyshape.api import export as export_model
from anyshape.domain import dims_of
from anyshape.domain.parse import parse_condition
from anyshape.exporting.context import CompareFile, comparing_elsewhere
from anyshape.findings import AnyshapeError, Finding, UsageError, raises_for_caller
from anyshape.findings.arguments import wrong_argument
from anyshape.modules.user_code import source_of_error
from anyshape.records.export import Export
from anyshape.saving import command_files, writing_folder
from anyshape.saving.folders import check_files
from anyshape.saving.outputs import MODEL, check_replaceable
from anyshape.sources.hugging_face import HUGGING_FACE
from anyshape.sources.model_file import MODEL_FILE, PYTHON_MODULE
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions
from anyshape.sources.timm_models import TIMM

SOURCES = (MODEL_FILE, HUGGING_FACE, TIMM, PYTHON_MODULE)
GROUP = "anyshape.sources"
__all__ = ["ModelSource", "Part", "SourceExport", "SourceKind", "SourceOptions", "export", "load_part", "resolve"]
_OWN = frozenset(field.name for field in fields(SourceOptions))


def resolve(text: str, options: SourceOptions | None = None) -> ModelSource:
    """The source that a text names, loaded. Raises UsageError if there is none, or if it does not take an option."""
    if not isinstance(text, str) or "\0" in text:
        raise UsageError(wrong_argument("source", text, "it names a model by a text.", "'model.py'"))
    asked = options or SourceOptions()
    kind, rest = _find_kind(text)
    for option in asked.given():
        if option not in kind.options:
            raise UsageError(say.option_not_taken(text, option, kind.options))
    return kind.load(rest, asked)


def load_part(text: str, file: str | Path, options: SourceOptions | None = None) -> Part:
    """The model of a source that belongs to a file: the only one, or the one with the file's name."""
    source = resolve(text, options)
    if len(source.parts) == 1:
        return source.parts[0]
    for part in source.parts:
        if part.name == Path(file).stem:
            return part
    raise UsageError(say.no_part(text, str(file), [part.name for part in source.parts]))


def _find_kind(text: str) -> tuple[SourceKind, str]:
    prefix, colon, rest = text.partition(":")
    by_prefix = {kind.prefix: kind for kind in SOURCES if kind.prefix}
    if colon and prefix in by_prefix:
        return by_prefix[prefix], rest
    registered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if colon and prefix in registered:
        return _registered(text, registered[prefix]), rest
    for kind in SOURCES:
        if kind.matches(text):
            return kind, text
    forms = [*(kind.form for kind in SOURCES), *(f"{name}:…" for name in registered)]
    raise UsageError(say.unknown_source(text, forms, [*by_prefix, *registered]))


def _registered(text: str, entry: EntryPoint) -> SourceKind:
    """The kind of an entry point; a load function that raises is a finding, not our fault."""
    try:
        kind = entry.load()
    except Exception as error:
        raise UsageError(say.source_raises(text, f"importing {entry.value!r} for", error)) from error
    if not isinstance(kind, SourceKind):
        wrong = TypeError(f"{entry.value!r} is a {type(kind).__name__}, and has to be an anyshape.sources.SourceKind")
        raise UsageError(say.source_raises(text, "reading the entry point of", wrong)) from wrong

    def load(rest: str, options: SourceOptions) -> ModelSource:
        try:
            return kind.load(rest, options)
        except AnyshapeError:
            raise
        except Exception as error:
            raise UsageError(say.source_raises(text, "loading", error, source_of_error(error))) from error

    return SourceKind(form=kind.form, load=load, prefix=entry.name, options=kind.options)


__is_entrance__ = True

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SourceExport:
    """The exports of a source, one for each file; `path` is the file or the folder."""

    path: Path
    files: tuple[Export, ...]

    @property
    def is_kept(self) -> bool:
        return all(each.is_kept for each in self.files)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for each in self.files for finding in each.findings)


@raises_for_caller
def export(
    source: str | ModelSource,
    path: str | PathLike[str],
    *,
    where: Sequence[str] | str = (),
    progress: Progress | None = None,
    comparing: Callable[[str], CompareFile] | None = None,
    overwrite: bool = False,
    **options: Any,
) -> SourceExport:
    """Export a source (`"hf:DIR"`, `"timm:NAME"`, `"model.py"`, …) to a file or a folder, all of it or nothing.

    `options` are those of SourceOptions (`task`, `config_only`, …) and of `anyshape.export`. `where` has further rules;
    with several files each goes to the files that have its dims. `comparing` gives the function by which other processes
    compare the file of a part, for the name of the part; edits of `repair` are compared here. A file that is of another kind
    than what is written in its place is replaced with `overwrite` alone. Raises what `anyshape.export` raises.
    """
    own = SourceOptions(**{name: options.pop(name) for name in _OWN & set(options)})
    with ExitStack() as stack:
        stack.enter_context(command_files(source if isinstance(source, str) else None, overwrite=overwrite))
        if isinstance(source, str):
            check_replaceable(path, MODEL)
            if progress is not None:
                progress(f"load {source}", 0, 0)
            source = resolve(source, own)
        rules = [where] if isinstance(where, str) else list(where)
        is_folder = _is_folder(source, fspath(path))
        folder = stack.enter_context(writing_folder(path)) if is_folder else None
        if folder is not None:
            if source.write_files is not None:
                source.write_files(folder)
            check_files(folder, Path(path), [f"{part.name}.onnx" for part in source.parts])
        files: tuple[Export, ...] = ()
        for part in source.parts:
            place = folder / f"{part.name}.onnx" if folder else Path(path)
            with comparing_elsewhere(None if comparing is None or options.get("repair") else comparing(part.name)):
                files = (*files, _export_part(source, part, rules, place, progress, options))
    if is_folder:
        files = tuple(replace(each, path=Path(path) / each.path.name) for each in files if each.path is not None)
    return SourceExport(Path(path), files)


def _is_folder(source: ModelSource, path: str) -> bool:
    """Whether the output is a folder: it is one, is written as one (`out/`), or the source has files to put there."""
    is_file = path.endswith(".onnx") and not Path(path).is_dir()
    if is_file and len(source.parts) > 1:
        raise UsageError(say.several_files(source.name, [part.name for part in source.parts], path))
    is_written_so = path.endswith(("/", os.sep)) or Path(path).is_dir()
    return not is_file and (is_written_so or source.write_files is not None or len(source.parts) > 1)


def _export_part(
    source: ModelSource,
    part: Part,
    rules: Sequence[str],
    path: Path,
    progress: Progress | None,
    options: dict[str, Any],
) -> Export:
    count = len(source.parts)

    def named(stage: str, done: int, total: int) -> None:
        if progress is not None:
            progress(f"{part.name}: {stage}" if count > 1 else stage, done, total)

    try:
        return export_model(
            part.model,
            part.inputs,
            path,
            dynamic=part.dynamic,
            where=[*part.where, *(rules if count == 1 else _rules_of(part, source, rules))],
            input_names=part.input_names,
            output_names=part.output_names,
            progress=named,
            **{**options, "values": options.get("values") or part.values},
        )
    except AnyshapeError as error:
        if count > 1:
            error.add(say.about_part(source.name, part.name, source.parts.index(part) + 1, count))
        raise


def _rules_of(part: Part, source: ModelSource, rules: Sequence[str]) -> list[str]:
    """The rules whose dims this part has; a rule that no part has goes to all, where it is refused."""
    return [rule for rule in rules if _has_dims(part, rule) or not any(_has_dims(each, rule) for each in source.parts)]


def _has_dims(part: Part, rule: str) -> bool:
    return set(dims_of(parse_condition(rule))) <= set(inspect.signature(part.inputs).parameters)
