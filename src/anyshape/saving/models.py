"""ONNX models as bytes and as files; the same model gives the same bytes.

A protobuf message has 2 GB at most. Above that the weights go to a second file, `m.onnx.data`, which the model speaks
of by its name alone: both can be moved together.
"""

from __future__ import annotations

import shutil
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anyshape.findings import UsageError
from anyshape.saving.atomic import Writer, fill, replace, reporting, resolve, temporary, write_atomically
from anyshape.saving.messages import too_large
from anyshape.saving.streamed import Streamed, replaced_weights, stream_model
from anyshape.saving.weights import Layout, inlined, lay_out

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

PROTOBUF_LIMIT = 2**31 - 1
_ROOM_FOR_GRAPH = 2**26
_RUN_INSIDE = 2**20  # weights of up to so many bytes lie inside a file that is written only to be run


def model_bytes(model: ir.Model | onnx.ModelProto) -> bytes:
    """The model as the bytes of one file. Raises UsageError above 2 GB."""
    import onnx_ir as ir

    if not isinstance(model, ir.Model):
        return _serialized(model, "the model in memory")
    with replaced_weights(model, inlined(model)):
        return _serialized(ir.to_proto(model), "the model in memory")


def save_model(
    model: ir.Model | onnx.ModelProto,
    path: str | PathLike[str],
    *,
    external_data: bool | None = None,
    limit: int = PROTOBUF_LIMIT - _ROOM_FOR_GRAPH,
) -> None:
    """Write the model to the path, whole or not at all; the model itself stays as it is.

    Weights go to `<path>.data` if `external_data` says so, or, if it is None, if they have more than `limit` bytes. The
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
    with replaced_weights(loaded, layout.replacements):
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
    with replaced_weights(model, layout.replacements):
        path.write_bytes(_serialized(ir.to_proto(model), path))


def _streamed(model: ir.Model, path: str | PathLike[str]) -> Streamed:
    """The pieces of one file. Raises UsageError above 2 GB."""
    with replaced_weights(model, inlined(model)):
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
