"""Write files whole or not at all; one file with its weights inside is written piece by piece, from the weights' own memory."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from anyshape.findings import Finding, UsageError
from anyshape.findings.finding import quoted
from anyshape.graphs import bytes_of

if TYPE_CHECKING:
    import onnx_ir as ir


_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # numbers of the fields in ModelProto, GraphProto and TensorProto
_PLACE = ("data_location", "external_data")
_NOTHING_WRITTEN = "Nothing was written, and what was there before is as it was."
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Streamed:
    """The pieces of a file in their order, and how many bytes they have together."""

    pieces: tuple[Any, ...]
    size: int

    def write(self, stream: BinaryIO) -> None:
        """The content of the file."""
        for piece in self.pieces:
            stream.write(piece if isinstance(piece, bytes) else bytes_of(piece))


def stream_model(model: ir.Model, large: Mapping[ir.Value, ir.ExternalTensor]) -> Streamed:
    """The model's file. `large` has the initializers of its graph that are not copied, each with a tensor without data."""
    import onnx_ir as ir

    weights = {value.name: value.const_value for value in large}
    with replaced_weights(large):
        proto = ir.to_proto(model)
    before, after = _parted(proto, _GRAPH)
    head, tail = _parted(proto.graph, _INITIALIZER)
    pieces: list[Any] = [head]
    for tensor in proto.graph.initializer:
        pieces += _pieces_of(tensor, weights.get(tensor.name))
    pieces.append(tail)
    length = sum(map(_size, pieces))
    pieces = [before, _tag(_GRAPH, length), *pieces, after]
    return Streamed(tuple(pieces), sum(map(_size, pieces)))


@contextlib.contextmanager
def replaced_weights(replacements: Mapping[ir.Value, ir.TensorProtocol]) -> Iterator[None]:
    """The model with other tensors for some of its weights, as long as the block runs."""
    originals = {value: value.const_value for value in replacements}
    try:
        for value, tensor in replacements.items():
            value.const_value = tensor
        yield
    finally:
        for value, original in originals.items():
            value.const_value = original


def _pieces_of(tensor: Any, weight: ir.TensorProtocol | None) -> list[Any]:
    """An initializer of the graph: whole, or around a weight whose bytes are written from its own memory."""
    if weight is None:
        data = _serialized(tensor)
        return [_tag(_INITIALIZER, len(data)), data]
    for name in _PLACE:
        tensor.ClearField(name)
    head, tail = _parted(tensor, _RAW_DATA)
    pieces = [head, _tag(_RAW_DATA, weight.nbytes), weight, tail]
    return [_tag(_INITIALIZER, sum(map(_size, pieces))), *pieces]


def _parted(message: Any, number: int) -> tuple[bytes, bytes]:
    """The fields of a message below a number, and those above it."""
    below, above = type(message)(), type(message)()
    for field, value in message.ListFields():
        part = below if field.number < number else above
        if field.number == number:
            continue
        if hasattr(value, "extend"):
            getattr(part, field.name).extend(value)
        elif field.message_type is not None:
            getattr(part, field.name).CopyFrom(value)
        else:
            setattr(part, field.name, value)
    return _serialized(below), _serialized(above)


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _size(piece: Any) -> int:
    return len(piece) if isinstance(piece, bytes) else int(piece.nbytes)


def _tag(number: int, length: int) -> bytes:
    """What comes before a field of bytes: its number and its length."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def missing_folder(path: str | PathLike[str]) -> Finding:
    """The folder is not there, and we do not make one that may be a slip of the finger."""
    return Finding(
        code="AS050",
        name="missing-folder",
        what=f"{fspath(path)!r} cannot be written: there is no folder {str(Path(path).parent)!r}.",
        fix=_make_folder(Path(path).parent),
    )


def _make_folder(folder: Path) -> str:
    """The command that makes the folder, where that is allowed."""
    nearest = next((above for above in folder.parents if above.exists()), Path())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return f"mkdir -p {quoted(str(folder))}"
    return f"name a folder that can be made: in {str(nearest)!r} none can."


def path_is_folder(path: str | PathLike[str]) -> Finding:
    """A folder has that name."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"{fspath(path)!r} cannot be written: it is a folder.",
        fix=f"name a file in it, such as {str(Path(path) / 'model.onnx')!r}.",
    )


def path_is_no_file(path: str | PathLike[str]) -> Finding:
    """A device, a pipe or a socket has that name."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"{fspath(path)!r} cannot be written: it is no ordinary file.",
        why="a file is written next to its place and then given its name, which would replace what is there.",
        fix="name an ordinary file.",
    )


def cannot_write(path: str | PathLike[str], error: OSError) -> Finding:
    """The system refused."""
    what = f"{fspath(path)!r} cannot be written"
    says = f"the system says: {error.strerror or error}."
    if error.errno in _FULL:
        return Finding(
            code="AS053",
            name="disk-full",
            what=f"{what}: the disk is full.",
            why=f"{says} {_NOTHING_WRITTEN}",
            fix="make room, or write to another disk.",
        )
    if error.errno in _FORBIDDEN:
        return Finding(
            code="AS052",
            name="no-permission",
            what=f"{what}: it is not allowed.",
            why=f"{says} {_NOTHING_WRITTEN}",
            fix="write to a folder of your own.",
        )
    return Finding(code="AS054", name="cannot-write", what=f"{what}.", why=f"{says} {_NOTHING_WRITTEN}")


def too_large(path: str | PathLike[str], size: int) -> Finding:
    """Even without its weights the model is more than protobuf can hold."""
    return Finding(
        code="AS055",
        name="model-too-large",
        what=f"{fspath(path)!r} cannot be written: its graph alone has {size} bytes.",
        why="an ONNX file has 2 GB at most, and only weights can lie in a second file.",
    )


Writer = Callable[[BinaryIO], object]


def write_atomically(path: str | PathLike[str], writer: Writer) -> None:
    """Give `writer` a stream, and its bytes the path. Raises UsageError if the system does not let us."""
    target = resolve(path)
    with reporting(path), temporary(target) as other:
        fill(other, writer)
        replace(other, target)


def check_writable(path: str | PathLike[str]) -> None:
    """Find out, before hours of work, that nothing can be written there. Leaves nothing behind."""
    target = resolve(path)
    with reporting(path), temporary(target) as other:
        fill(other, lambda stream: None)


def resolve(path: str | PathLike[str]) -> Path:
    """The real place of the file, behind links. Raises UsageError if it cannot be the place of a file."""
    with reporting(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise UsageError(path_is_folder(path))
        if target.exists() and not target.is_file():
            raise UsageError(path_is_no_file(path))
        if not target.parent.is_dir():
            raise UsageError(missing_folder(path))
        return target


@contextlib.contextmanager
def reporting(path: str | PathLike[str]) -> Iterator[None]:
    """The system's refusals in our own words."""
    try:
        yield
    except OSError as error:
        raise UsageError(cannot_write(path, error)) from error


@contextlib.contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """The name of a file next to the target; whatever has that name in the end is removed."""
    other = target.parent / f".anyshape-{secrets.token_hex(8)}.tmp"
    try:
        yield other
    finally:
        other.unlink(missing_ok=True)


def fill(path: Path, writer: Writer) -> None:
    """A new file with the writer's bytes, which the disk really has when this returns."""
    # Not tempfile: its files can be read by their owner only, whatever the user's umask says.
    with path.open("xb") as stream:
        writer(stream)
        stream.flush()
        os.fsync(stream.fileno())


def replace(source: Path, target: Path) -> None:
    """Give the source the target's name, and the permissions of the file that had it."""
    if target.exists():
        shutil.copymode(target, source)
    source.replace(target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Where a system can do it, the new name is on the disk, too; where it cannot, that is its own business."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
