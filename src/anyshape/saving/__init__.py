"""Stage: writing files, whole or not at all.

This file: ONNX models as bytes and as files, weights inside or in a file of their own; and folders that are written whole
or not at all.

A protobuf message has 2 GB at most. Above that the weights go to a second file, `m.onnx.data`, which the model speaks
of by its name alone: both can be moved together.

Files, in the order in which data flows:

    atomic  one file
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anyshape.findings import Finding, UsageError
from anyshape.graphs import bytes_of
from anyshape.saving.atomic import (
    Streamed,
    Writer,
    check_writable,
    fill,
    missing_folder,
    replace,
    replaced_weights,
    reporting,
    resolve,
    stream_model,
    temporary,
    too_large,
    write_atomically,
)

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

__all__ = ["check_writable", "model_bytes", "save_model", "save_to_run", "write_atomically", "writing_folder"]


# Below this a tensor stays in the model, where shape inference and optimizers can see it.
_SMALLEST = 1024

# So that a large tensor can be mapped into memory, on Windows too.
_ALIGNMENT, _ALIGNED_FROM = 2**16, 2**20
PROTOBUF_LIMIT = 2**31 - 1
_ROOM_FOR_GRAPH = 2**26
_RUN_INSIDE = 2**20  # weights of up to so many bytes lie inside a file that is written only to be run


@dataclass(frozen=True)
class Layout:
    """Which weights go to the file `location`, and where; `weights` counts the bytes of all of them."""

    location: str
    replacements: Mapping[ir.Value, ir.ExternalTensor]
    tensors: tuple[tuple[int, ir.TensorProtocol], ...]
    weights: int

    def of_graph(self, graph: ir.Graph) -> dict[ir.Value, ir.ExternalTensor]:
        """Those of the replacements that are for initializers of this graph, not of one inside it."""
        return {value: tensor for value, tensor in self.replacements.items() if value.graph is graph}

    def write(self, stream: BinaryIO) -> None:
        """The content of the file."""
        for offset, tensor in self.tensors:
            stream.write(bytes(offset - stream.tell()))
            stream.write(bytes_of(tensor))


def lay_out(model: ir.Model, location: str) -> Layout:
    """A place in the file for every tensor that is not small, in the order of the graph."""
    import onnx_ir as ir

    replacements: dict[ir.Value, ir.ExternalTensor] = {}
    tensors: list[tuple[int, ir.TensorProtocol]] = []
    end = 0
    for value, tensor in _initializers(model):
        if tensor.nbytes < _SMALLEST or tensor.dtype == ir.DataType.STRING:
            continue
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT if tensor.nbytes >= _ALIGNED_FROM else end
        end = offset + tensor.nbytes
        tensors.append((offset, tensor))
        replacements[value] = ir.ExternalTensor(
            location,
            offset,
            tensor.nbytes,
            tensor.dtype,
            shape=_shape(tensor),
            name=value.name or "",
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )
    return Layout(location, replacements, tuple(tensors), end)


def inlined(model: ir.Model) -> dict[ir.Value, ir.TensorProtocol]:
    """Tensors in memory for the weights that lie in files, which may not be next to the file that is written."""
    import onnx_ir as ir

    return {
        value: ir.Tensor(tensor.numpy(), tensor.dtype, shape=_shape(tensor), name=tensor.name)
        for value, tensor in _initializers(model)
        if isinstance(tensor, ir.ExternalTensor)
    }


def _initializers(model: ir.Model) -> Iterator[tuple[ir.Value, ir.TensorProtocol]]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value, value.const_value


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    import onnx_ir as ir

    return ir.Shape(tensor.shape.numpy())


def model_bytes(model: ir.Model | onnx.ModelProto) -> bytes:
    """The model as the bytes of one file. Raises UsageError above 2 GB."""
    import onnx_ir as ir

    if not isinstance(model, ir.Model):
        return _serialized(model, "the model in memory")
    with replaced_weights(inlined(model)):
        return _serialized(ir.to_proto(model), "the model in memory")


def save_model(
    model: ir.Model | onnx.ModelProto,
    path: str | PathLike[str],
    *,
    external_data: bool | None = None,
    limit: int = PROTOBUF_LIMIT - _ROOM_FOR_GRAPH,
) -> None:
    """Write the model to the path, whole or not at all; the model itself stays as it is.

    Weights go to `<path>.data` if `external_data` is True, or, if it is None, if they have more than `limit` bytes. The
    second file is written first; should the model then fail to take its place, the old second file comes back. A
    second file of an earlier, larger model is left alone. Raises UsageError if the system does not let us write.
    """
    import onnx_ir as ir

    loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
    if external_data is None:
        external_data = lay_out(loaded, "").weights > limit
    if not external_data:
        write_atomically(path, _streamed(loaded, path).write)
        return
    target = resolve(path)
    layout = lay_out(loaded, f"{target.name}.data")
    with replaced_weights(layout.replacements):
        data = _serialized(ir.to_proto(loaded), path)
    with reporting(path):
        _write_pair(target, data, layout)


def save_to_run(model: ir.Model, path: Path) -> None:
    """Write a temporary file that is only run: large weights lie beside it, from where a runtime maps them into memory.

    Nobody waits until the disk has it.
    """
    import onnx_ir as ir

    layout = lay_out(model, f"{path.name}.data")
    if layout.weights <= _RUN_INSIDE:
        with path.open("wb") as stream:
            _streamed(model, path).write(stream)
        return
    with path.with_name(layout.location).open("wb") as stream:
        layout.write(stream)
    with replaced_weights(layout.replacements):
        path.write_bytes(_serialized(ir.to_proto(model), path))


def _streamed(model: ir.Model, path: str | PathLike[str]) -> Streamed:
    """The pieces of one file. Raises UsageError above 2 GB."""
    with replaced_weights(inlined(model)):
        found = stream_model(model, lay_out(model, "").of_graph(model.graph))
    if found.size > PROTOBUF_LIMIT:
        raise UsageError(too_large(path, found.size))
    return found


def _serialized(proto: onnx.ModelProto, path: str | PathLike[str]) -> bytes:
    try:
        size = proto.ByteSize()
    except Exception as error:  # protobuf's EncodeError, whose module has no types
        raise UsageError(too_large(path, PROTOBUF_LIMIT + 1)) from error
    if size > PROTOBUF_LIMIT:
        raise UsageError(too_large(path, size))
    data: bytes = proto.SerializeToString(deterministic=True)
    return data


def _write_pair(target: Path, model: bytes, layout: Layout) -> None:
    """Both files beside their places first, then the one after the other into them."""
    data_target = target.with_name(layout.location)
    with temporary(target) as model_file, temporary(data_target) as data_file, temporary(data_target) as old_data:
        fill(data_file, layout.write)
        fill(model_file, _writing(model))
        had_data = data_target.exists()
        try:
            if had_data:
                shutil.copymode(data_target, data_file)
                data_target.replace(old_data)
            replace(data_file, data_target)
            replace(model_file, target)
        except BaseException:
            if model_file.exists():  # the old model, if any, is still in its place, and wants its old weights
                _take_back(data_target, old_data if had_data else None)
            raise


def _take_back(data_target: Path, old_data: Path | None) -> None:
    if old_data is None:
        data_target.unlink(missing_ok=True)
    elif old_data.exists():
        old_data.replace(data_target)


def _writing(data: bytes) -> Writer:
    def write(stream: BinaryIO) -> None:
        stream.write(data)

    return write


def path_is_a_file(path: str | PathLike[str]) -> Finding:
    """A file has the name that a folder should get."""
    return Finding(
        code="AS051",
        name="not-a-file",
        what=f"the folder {fspath(path)!r} cannot be written: a file has that name.",
        fix="name a folder, or a path where nothing is yet.",
    )


@contextlib.contextmanager
def writing_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """An empty folder next to `path`, whose files are in the place `path` when the block ends without an error.

    A new folder gets its name in one step. In a folder that exists, files of the same names are replaced, and all of them
    come back should one fail; other files are left alone. Raises UsageError if the system does not let us write.
    """
    target = Path(path).resolve()
    with reporting(path):
        if target.exists() and not target.is_dir():
            raise UsageError(path_is_a_file(path))
        if not target.parent.is_dir():
            raise UsageError(missing_folder(path))
        other = target.parent / f".anyshape-{secrets.token_hex(8)}.tmp"
        other.mkdir()
    try:
        yield other
        with reporting(path):
            if target.is_dir():
                _move_files(other, target)
            else:
                other.rename(target)
    finally:
        shutil.rmtree(other, ignore_errors=True)


def _move_files(source: Path, target: Path) -> None:
    """Give every file of the source its place in the target, or leave the target as it was."""
    old = source / ".replaced"
    old.mkdir()
    names = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file()]
    done: list[Path] = []
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if (target / name).exists():
                (old / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(target / name, old / name)
            done.append(name)
            (source / name).replace(target / name)
    except BaseException:
        for name in done:
            if (old / name).exists():
                (old / name).replace(target / name)
            elif not (source / name).exists():
                (target / name).unlink(missing_ok=True)
        raise
