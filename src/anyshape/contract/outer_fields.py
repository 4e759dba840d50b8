"""The outermost fields of an ONNX file, read one by one: its metadata, without the graph or the weights.

A model is a protobuf message, and protobuf does not say where a message ends: a file that was cut short is known by a
field that reaches beyond the end, or by the absence of what every model has.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# The fields of ModelProto that every model has, and the one that we are after.
_IR_VERSION, _GRAPH, _OPSET_IMPORT, _METADATA = 1, 7, 8, 14
_KINDS = {_IR_VERSION: _VARINT, 2: _BYTES, 3: _BYTES, _GRAPH: _BYTES, _OPSET_IMPORT: _BYTES, _METADATA: _BYTES}


class NotOnnx(Exception):
    """The bytes are not an ONNX model."""


class CutShort(NotOnnx):
    """The bytes are the beginning of an ONNX model; `size` and `needed` count bytes, `needed` at least."""

    def __init__(self, size: int, needed: int) -> None:
        super().__init__(size, needed)
        self.size = size
        self.needed = needed


def read_metadata(stream: BinaryIO) -> dict[str, str]:
    """The metadata_props of the model in the stream. Raises NotOnnx, or CutShort."""
    metadata: dict[str, str] = {}
    seen: set[int] = set()
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    try:
        for number, payload in _fields(stream, size, wanted=_METADATA):
            seen.add(number)
            if payload is not None:
                key, value = _entry(payload)
                metadata[key] = value
    except _BeyondEndError as error:
        if _IR_VERSION in seen:
            raise CutShort(size, error.needed) from error
        raise NotOnnx from error
    if _IR_VERSION not in seen:
        raise NotOnnx
    if not {_GRAPH, _OPSET_IMPORT} <= seen:
        raise CutShort(size, size + 1)
    return metadata


class _BeyondEndError(Exception):
    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


def _fields(stream: BinaryIO, size: int, wanted: int | None = None) -> Iterator[tuple[int, bytes | None]]:
    """Number and content of each field; None for the content of those that are not wanted, which is not read."""
    while stream.tell() < size:
        number, kind = divmod(_varint(stream), 8)
        if number == 0 or (wanted is not None and _KINDS.get(number, kind) != kind):
            raise NotOnnx
        if kind == _VARINT:
            _varint(stream)
            yield number, None
            continue
        length = _length(stream, kind)
        end = stream.tell() + length
        if end > size:
            raise _BeyondEndError(end)
        payload = stream.read(length) if wanted in (None, number) else None
        stream.seek(end)
        yield number, payload


def _length(stream: BinaryIO, kind: int) -> int:
    if kind == _BYTES:
        return _varint(stream)
    if kind in (_FIXED32, _FIXED64):
        return 4 if kind == _FIXED32 else 8
    raise NotOnnx


def _varint(stream: BinaryIO) -> int:
    """Seven bits a byte, the lowest first; the highest bit: more follow."""
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            raise _BeyondEndError(stream.tell() + 1)
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise NotOnnx


def _entry(payload: bytes) -> tuple[str, str]:
    """Key and value of a StringStringEntryProto."""
    try:
        fields = dict(_fields(io.BytesIO(payload), len(payload)))
        return (fields.get(1) or b"").decode(), (fields.get(2) or b"").decode()
    except (_BeyondEndError, UnicodeDecodeError) as error:
        raise NotOnnx from error
