"""ONNX models as bytes and as files; the same model gives the same bytes.

A protobuf message has 2 GB at most. Above that the weights go to a second file, `m.onnx.data`, which the model speaks
of by its name alone: both can be moved together.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anyshape.findings import UsageError
from anyshape.saving.atomic import Writer, fill, replace, reporting, resolve, temporary, write_atomically
from anyshape.saving.messages import too_large
from anyshape.saving.weights import Layout, inlined, lay_out

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

PROTOBUF_LIMIT = 2**31 - 1
_ROOM_FOR_GRAPH = 2**26


def model_bytes(model: ir.Model | onnx.ModelProto) -> bytes:
    """The model as the bytes of one file. Raises UsageError above 2 GB."""
    import onnx_ir as ir

    if not isinstance(model, ir.Model):
        return _serialized(model, "the model in memory")
    with _in_place(model, inlined(model)):
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

    if external_data is None:
        loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
        external_data = lay_out(loaded, "").weights > limit
    if not external_data:
        data = model_bytes(model)
        write_atomically(path, lambda stream: stream.write(data))
        return
    target = resolve(path)
    loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
    layout = lay_out(loaded, f"{target.name}.data")
    with _in_place(loaded, layout.replacements):
        data = _serialized(ir.to_proto(loaded), path)
    with reporting(path):
        _write_pair(target, data, layout)


def _serialized(proto: onnx.ModelProto, path: str | PathLike[str]) -> bytes:
    try:
        size = proto.ByteSize()
    except Exception as error:  # protobuf's EncodeError, whose module has no types
        raise UsageError(too_large(path, PROTOBUF_LIMIT + 1)) from error
    if size > PROTOBUF_LIMIT:
        raise UsageError(too_large(path, size))
    data: bytes = proto.SerializeToString(deterministic=True)
    return data


@contextlib.contextmanager
def _in_place(model: ir.Model, replacements: Mapping[ir.Value, ir.TensorProtocol]) -> Iterator[None]:
    """The model with other tensors for some of its weights, as long as the block runs."""
    originals = {value: value.const_value for value in replacements}
    try:
        for value, tensor in replacements.items():
            value.const_value = tensor
        yield
    finally:
        for value, original in originals.items():
            value.const_value = original


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
