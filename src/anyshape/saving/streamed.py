"""The pieces of a model's file: weights are written from their own memory, without a copy of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from anyshape.graphs import bytes_of

if TYPE_CHECKING:
    import onnx_ir as ir


_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # numbers of the fields in ModelProto, GraphProto and TensorProto
_PLACE = ("data_location", "external_data")


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
