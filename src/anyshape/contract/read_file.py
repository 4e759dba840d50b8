"""An ONNX file of unknown origin -> its metadata, its message, its graph: read here, and checked before anything else sees it.

Every way in which a file can be no ONNX model becomes a UsageError here, once. Only regular files are read: a pipe or a device
has no end.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from anyshape.contract.file_messages import cut_short, missing_file, no_source, not_a_file, not_onnx, unreadable_file
from anyshape.contract.outer_fields import CutShort, NotOnnx, read_metadata
from anyshape.contract.safe_file import check_proto
from anyshape.contract.safe_tensors import Beside, unsafe
from anyshape.findings import UsageError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    File = str | PathLike[str] | bytes

IN_MEMORY = "the model in memory"
_NOT_BLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def name_of(source: Any) -> str:
    """How messages name a file, or the bytes of one. Raises UsageError for what is neither."""
    if isinstance(source, bytes):
        return IN_MEMORY
    path = fspath(source) if isinstance(source, (str, PathLike)) else None
    if not isinstance(path, str):
        raise UsageError(no_source(type(source).__name__))
    return path


def read_metadata_of(source: File) -> dict[str, str]:
    """The metadata of a file or its bytes. Raises UsageError for what is no ONNX model."""
    name = name_of(source)
    with _opened(source) as stream:
        return _metadata(stream, name)


def read_model(source: File, *, needs_weights: bool = False) -> onnx.ModelProto:
    """The model in a file or its bytes, without the weights that lie in other files.

    Raises UsageError where it cannot be read, or is not safe to work with; with `needs_weights`, and for missing weights.
    """
    import onnx

    name = name_of(source)
    with _opened(source) as stream:
        _metadata(stream, name)  # says more exactly what is wrong than protobuf does
        stream.seek(0)
        data = source if isinstance(source, bytes) else stream.read()
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # protobuf's DecodeError, whose module has no types
        raise UsageError(not_onnx(name)) from error
    beside = Beside(name, None if isinstance(source, bytes) else Path(name))
    check_proto(model, beside, needs_weights=needs_weights)
    return model


def open_model(source: File, *, needs_weights: bool = False) -> ir.Model:
    """The graph in a file or its bytes. Weights in a second file are read when they are used. Raises as `read_model` does."""
    from onnx_ir.external_data import set_base_dir

    model = graph_of(read_model(source, needs_weights=needs_weights), name_of(source))
    if not isinstance(source, bytes):
        set_base_dir(model.graph, Path(name_of(source)).parent)
    return model


def graph_of(model: onnx.ModelProto, name: str) -> ir.Model:
    """The message as a graph. Raises UsageError where it is none."""
    import onnx_ir as ir

    with foreign_errors(name, "its graph cannot be read."):
        return ir.from_proto(model)


@contextmanager
def foreign_errors(name: str, what: str) -> Iterator[None]:
    """Around code of another library that reads a graph: what it raises is a finding about the file."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        lines = [line for line in str(error.__cause__ or error).splitlines() if line.strip()]
        raise UsageError(unsafe(name, what, (lines or [type(error).__name__])[0])) from error


@contextmanager
def _opened(source: File) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    path = fspath(source)
    try:
        with _open_regular(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise UsageError(missing_file(path)) from error
    except IsADirectoryError as error:
        raise UsageError(not_a_file(path)) from error
    except OSError as error:
        # On Windows, opening a folder raises PermissionError, not IsADirectoryError.
        is_folder = isinstance(error, PermissionError) and Path(path).is_dir()
        raise UsageError(not_a_file(path) if is_folder else unreadable_file(path, error)) from error
    except ValueError as error:  # a null character in the path
        raise UsageError(unreadable_file(path, OSError(str(error)))) from error


def _open_regular(path: str) -> BinaryIO:
    """The file, opened without waiting for the other end of a pipe. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | _NOT_BLOCKING)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(mode):
            raise OSError("it is a pipe or a device, not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _metadata(stream: BinaryIO, name: str) -> dict[str, str]:
    try:
        return read_metadata(stream)
    except CutShort as error:
        raise UsageError(cut_short(name, error.size, error.needed)) from error
    except NotOnnx as error:
        raise UsageError(not_onnx(name)) from error
