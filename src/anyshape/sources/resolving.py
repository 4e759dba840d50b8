"""Find the kind of source that a text names, and load it.

    "hf:DIR"  ->  HUGGING_FACE.load("DIR")      "model.py"  ->  MODEL_FILE.load("model.py")

A kind is one file and its line in SOURCES. Other packages register theirs by an entry point of the group
`anyshape.sources`: its name is the prefix, its object a SourceKind.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import anyshape.sources.unusable_sources as say
from anyshape.findings import AnyshapeError, UsageError
from anyshape.modules.frames import source_of_error
from anyshape.sources.hugging_face.kind import HUGGING_FACE
from anyshape.sources.model_file import MODEL_FILE
from anyshape.sources.python_module import PYTHON_MODULE
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions
from anyshape.sources.timm_models import TIMM

SOURCES = (MODEL_FILE, HUGGING_FACE, TIMM, PYTHON_MODULE)
GROUP = "anyshape.sources"


def resolve(text: str, options: SourceOptions | None = None) -> ModelSource:
    """The source that a text names, loaded. Raises UsageError if there is none, or if it does not take an option."""
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
