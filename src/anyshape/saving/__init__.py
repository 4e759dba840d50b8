"""Stage: writing files, whole or not at all.

This file: ONNX models as bytes and as files, weights inside or in a file of their own.

A protobuf message has 2 GB at most. Above that the weights go to a second file, `m.onnx.0123456789ab.data`, which the model
mentions by its name alone: both can be moved together.

Files, in the order in which data flows:

    outputs     what an output may replace
    data_files  files with weights, and which of them can go
    leftovers   temporary files, and those of writers that were killed
    streamed    the pieces of a model's file
    atomic      one file
    folders     a folder
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anyshape.findings import UsageError
from anyshape.graphs import bytes_of
from anyshape.saving.atomic import (
    Writer,
    check_writable,
    fill,
    replace,
    reporting,
    resolve,
    too_large,
    write_atomically,
)
from anyshape.saving.data_files import data_files_of, discard_unmentioned
from anyshape.saving.folders import writing_folder
from anyshape.saving.leftovers import temporary_file
from anyshape.saving.outputs import MODEL, check_replaceable, command_files
from anyshape.saving.streamed import Streamed, replaced_weights, stream_model

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

__all__ = [
    "check_writable",
    "command_files",
    "model_bytes",
    "save_model",
    "save_to_run",
    "write_atomically",
    "writing_folder",
]


# Below this a tensor stays in the model, where shape inference and optimizers can see it.
_SMALLEST = 1024

# So that a large tensor can be mapped into memory, on Windows too.
_ALIGNMENT, _ALIGNED_FROM = 2**16, 2**20
PROTOBUF_LIMIT = 2**31 - 1
_ROOM_FOR_GRAPH = 2**26
_DIGITS = 12  # of the digest in a name: two contents of one file name that agree in 48 bits do not occur
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

    Weights go to `<path>.<digest>.data` if `external_data` is True, or, if it is None, if they have more than `limit`
    bytes. The second file is written first, and the model that has its place mentions it; so whenever a process ends,
    the old model is there with its weights, or the new one. The weights of the model that was replaced are removed. Raises
    UsageError if there is a file that is no model, or if the system does not let us write.
    """
    import onnx_ir as ir

    loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
    if external_data is None:
        external_data = lay_out(loaded, "").weights > limit
    if not external_data:
        written = _streamed(loaded, path).write
        data = data_files_of(resolve(path))
        write_atomically(path, written, MODEL)
        discard_unmentioned(data)
        return
    target = resolve(path)
    with reporting(path):
        check_replaceable(path, MODEL)
        _write_pair(target, loaded, path)


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


def _write_pair(target: Path, loaded: ir.Model, path: str | PathLike[str]) -> None:
    """Both files beside their places first. The weights get theirs under a new name, so the rename of the model decides."""
    import onnx_ir as ir

    data: list[Path] = []
    try:
        with temporary_file(target.parent) as data_file, temporary_file(target.parent) as model_file:
            fill(data_file, lay_out(loaded, "").write)
            layout = lay_out(loaded, f"{target.name}.{_digest(data_file)}.data")
            with replaced_weights(layout.replacements):
                model = _serialized(ir.to_proto(loaded), path)
            fill(model_file, _writing(model))
            data = [target.with_name(layout.location), *data_files_of(target)]
            replace(data_file, data[0])
            replace(model_file, target)
    finally:
        discard_unmentioned(data)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]


def _writing(data: bytes) -> Writer:
    def write(stream: BinaryIO) -> None:
        stream.write(data)

    return write
