"""What an output may replace: decided here, for every file that is written under a name that a user gave.

An output never replaces a file that the command reads, nor another output of the same command. It replaces a file of
another kind than its own (an ONNX file in the place of a picture) only with `overwrite`. An empty file can be replaced by
anything: there is nothing to lose.

A command, or a function that is called from Python, states what it reads with `command_files`; functions that write use
`check_replaceable` before the work and again before the file gets its name.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from anyshape.findings import Finding, UsageError

# Of onnx.ModelProto: the number of each field -> its wire type, a varint or bytes with their length.
_VARINT, _BYTES = 0, 2
_FIELDS = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 6: _BYTES, 7: _BYTES, 8: _BYTES, 14: _BYTES}
_FIELDS |= {20: _BYTES, 25: _BYTES, 26: _BYTES}
_IR_VERSION, _GRAPH = 1, 7
_HEAD = 2048
_DATA_NAME = re.compile(r".+\.[0-9a-f]{12}\.data")


def is_model(path: Path) -> bool:
    """Whether a file is an ONNX model from its first to its last byte; only the lengths of its parts are read."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            found = set()
            while stream.tell() < size:
                number, wire = divmod(_read_varint(stream), 8)
                if _FIELDS.get(number) != wire:
                    return False
                found.add(number)
                value = _read_varint(stream)
                if wire == _BYTES and stream.seek(value, os.SEEK_CUR) > size:
                    return False
    except (OSError, ValueError):
        return False
    return {_IR_VERSION, _GRAPH} <= found


def _read_varint(stream: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("no varint of protobuf")


def is_data_name(name: str) -> bool:
    """Whether a file of weights has the name that `save_model` gives: `m.onnx.0123456789ab.data`."""
    return _DATA_NAME.fullmatch(name) is not None


def mentions(model: Path, name: str) -> bool:
    """Whether a model's file has this text in it, as it has the name of each file with its weights."""
    try:
        with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(name.encode("utf-8", "surrogateescape")) >= 0
    except (OSError, ValueError):  # gone meanwhile, or empty
        return False


@dataclass(frozen=True)
class Kind:
    """What is written to a place, in words, and how a file is recognised to be that already."""

    words: str
    is_one: Callable[[Path], bool]


def _head_has(*marks: bytes) -> Callable[[Path], bool]:
    def is_one(path: Path) -> bool:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
        return any(mark in head for mark in marks)

    return is_one


def _begins(*marks: bytes) -> Callable[[Path], bool]:
    def is_one(path: Path) -> bool:
        with path.open("rb") as stream:
            return stream.read(_HEAD).startswith(marks)

    return is_one


MODEL = Kind("an ONNX file", is_model)
PAGE = Kind("a page of anyshape", _head_has(b'<meta name="generator" content="anyshape'))
CHART = Kind("a chart of anyshape", _head_has(b'content="anyshape', b'data-generator="anyshape'))
DIFF = Kind("a diff", _begins(b"--- ", b"diff --git "))
ROWS = Kind("the rows of a batch", _begins(b'{"name": '))
SUMMARY = Kind("the summary of a batch", _begins(b"# Models\n"))
COMPANION = Kind("a file of an earlier export", lambda path: False)

Identity = tuple[int, int, int, int] | None


@dataclass(frozen=True, kw_only=True)
class Command:
    """The files that a command reads, and what was in the places of its outputs before it."""

    reads: tuple[Path, ...] = ()
    overwrite: bool = False
    before: dict[Path, Identity] | None = None

    def note(self, outputs: Iterable[str | PathLike[str]]) -> None:
        """Look at what is in the places of these outputs before the command."""
        for path in outputs:
            if self.before is not None:
                self.before.setdefault(Path(path), _identity(Path(path)))

    def written(self) -> list[Path]:
        """The outputs that are there now, and were not before, or were others."""
        found = (self.before or {}).items()
        return sorted(path for path, identity in found if _identity(path) not in (identity, None))


_CURRENT: ContextVar[Command | None] = ContextVar("files of the command", default=None)
_NO_COMMAND = Command()


@contextlib.contextmanager
def command_files(*reads: str | PathLike[str] | None, overwrite: bool = False) -> Iterator[Command]:
    """While the block runs, no output replaces one of these files, and those of the blocks around it.

    A text may be a source: `model.py:Net` and `hf:folder` are the file and the folder.
    """
    outer = _CURRENT.get() or _NO_COMMAND
    found = [path for each in reads if each and (path := _path_in(fspath(each))) is not None]
    current = Command(
        reads=(*outer.reads, *found),
        overwrite=overwrite or outer.overwrite,
        before={} if outer.before is None else outer.before,
    )
    token = _CURRENT.set(current)
    try:
        yield current
    finally:
        _CURRENT.reset(token)


def check_distinct(outputs: Iterable[tuple[str, str | PathLike[str] | None]]) -> None:
    """Raise UsageError where two outputs, each with the option that names it, are in one place."""
    seen: list[tuple[str, Path]] = []
    for option, path in outputs:
        if path is None:
            continue
        for other_option, other in seen:
            if is_same_place(Path(path), other):
                raise UsageError(two_outputs(path, other_option, option))
        seen.append((option, Path(path)))


def check_replaceable(path: str | PathLike[str], kind: Kind | None, *, is_edit: bool = False) -> None:
    """Raise UsageError unless a file of this kind may take the place; None: any file there is ours.

    `is_edit`: the file that the command reads is the one that it changes.
    """
    command, place = _CURRENT.get() or _NO_COMMAND, Path(path)
    command.note([place])
    if not place.is_file() or place.stat().st_size == 0:
        return
    if not is_edit and _is_read(place, command.reads):
        raise UsageError(output_is_read(path))
    if kind is not None and not command.overwrite and not kind.is_one(place):
        raise UsageError(other_kind(path, kind))


def is_same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would, where it is not there yet."""
    real, real_other = (Path(os.path.realpath(each)) for each in (one, other))
    if real == real_other:
        return True
    with contextlib.suppress(OSError):  # one of them is not there yet
        return real.samefile(real_other)
    return str(real).casefold() == str(real_other).casefold() and _ignores_case(real.parent)


def _ignores_case(folder: Path) -> bool:
    """Whether the file system takes `a` and `A` as one name; seen by the folder's own name."""
    try:
        return folder.samefile(folder.with_name(folder.name.swapcase()))
    except (OSError, ValueError):
        return False


def _path_in(text: str) -> Path | None:
    """The file or folder that a source names: the text itself, without `:NAME` behind it, or without `hf:` before it."""
    for part in (text, text.rpartition(":")[0], text.partition(":")[2]):
        with contextlib.suppress(OSError, ValueError):
            if part and Path(part).exists():
                return Path(part)
    return None


def _is_read(place: Path, reads: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(place))
    for each in reads:
        if each.is_dir():
            is_inside = each.resolve() in real.parents and not is_model(real) and not is_data_name(real.name)
            if is_inside or (real.parent != each.resolve() and is_same_place(each, real)):
                return True
        elif is_same_place(each, real) or _has_weights_of(each, real):
            return True
    return _is_imported(real)


def _has_weights_of(model: Path, place: Path) -> bool:
    """Whether a file is one in which the model's weights lie."""
    folder = model.resolve().parent
    if folder not in place.parents or is_model(place) or not is_model(model):
        return False
    return mentions(model, place.relative_to(folder).as_posix())


def _is_imported(place: Path) -> bool:
    """Whether the code of a module that is imported now comes from the file."""
    files = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    return any(
        isinstance(file, str) and file.endswith(place.name) and is_same_place(Path(file), place) for file in files
    )


def _identity(path: Path) -> Identity:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def output_is_read(path: str | PathLike[str]) -> Finding:
    """The output would replace what the command reads."""
    return Finding(
        code="AS070",
        name="output-is-input",
        what=f"{fspath(path)!r} cannot be written: this command reads it.",
        why="what it is made from would be gone.",
        fix="name another file.",
    )


def two_outputs(path: str | PathLike[str], option: str, other: str) -> Finding:
    """Two outputs have one place."""
    return Finding(
        code="AS071",
        name="output-twice",
        what=f"{fspath(path)!r} cannot be written twice: {option} and {other} name one file.",
        fix=f"name another file with {other}.",
    )


def other_kind(path: str | PathLike[str], kind: Kind) -> Finding:
    """The place is taken by something that this output does not replace."""
    return Finding(
        code="AS072",
        name="output-in-use",
        what=f"{fspath(path)!r} cannot be written: the file there is not {kind.words}.",
        why="it may be all there is of something else.",
        fix="name another file, or remove that one; --overwrite (in Python overwrite=True) replaces it.",
    )
