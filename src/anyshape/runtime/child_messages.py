"""Messages between us and the child process: a JSON header, then the raw bytes of its arrays; and the calls of Python functions
that custom nodes in the child make over them.

    8 bytes, little endian: length of the header | header | array bytes, one after the other

Arrays are written from, and read into, their own memory: a large one is never held twice on one side.

child: call mylib::Scale with these arrays  ->  here: the user's function  ->  child: returned, or raised
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from anyshape.runtime.dtypes import Array, dtype_called, from_raw, raw
from anyshape.runtime.runtime_errors import RuntimeFailed

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 24


@dataclass(frozen=True)
class Message:
    """One request or reply: what it is, the plain facts that go with it, and arrays by name."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)


def write_message(stream: BinaryIO, message: Message) -> None:
    """Write and flush; OSError when nobody reads any more."""
    described: list[dict[str, Any]] = []
    for name, array in message.arrays.items():
        entry: dict[str, Any] = {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        if array.dtype.kind in "OUS":
            entry |= {"dtype": "object", "strings": [str(item) for item in array.reshape(-1)]}
        described.append(entry)
    header = json.dumps({"kind": message.kind, "facts": dict(message.facts), "arrays": described}).encode()
    stream.write(_LENGTH.pack(len(header)) + header)
    for array in message.arrays.values():
        if array.dtype.kind not in "OUS":
            data = raw(array)
            for start in range(0, data.size, _CHUNK):
                stream.write(data[start : start + _CHUNK].data)
    stream.flush()


def read_message(stream: BinaryIO) -> Message | None:
    """The next message; None when the other side has closed, be it in the middle of one."""
    try:
        (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
        header = json.loads(bytes(_read_exactly(stream, length)))
        arrays = {entry["name"]: _read_array(stream, entry) for entry in header["arrays"]}
    except EOFError:
        return None
    return Message(header["kind"], header["facts"], arrays)


def _read_array(stream: BinaryIO, entry: Mapping[str, Any]) -> Array:
    shape = tuple(entry["shape"])
    if "strings" in entry:
        return np.array(entry["strings"], dtype=object).reshape(shape)
    dtype = dtype_called(entry["dtype"])
    count = int(np.prod(shape, dtype=np.int64))
    return from_raw(_read_exactly(stream, count * dtype.itemsize), dtype, shape)


def _read_exactly(stream: BinaryIO, count: int) -> bytearray:
    data = bytearray(count)
    view, filled = memoryview(data), 0
    while filled < count:
        got = stream.readinto(view[filled : filled + _CHUNK])  # type: ignore[attr-defined]
        if not got:
            raise EOFError
        filled += got
    return data


Ask = Callable[[Message], Message]


def remote_operator(name: str, ask: Ask) -> Callable[..., Any]:
    """In the child: the function that asks the parent."""

    def call(*inputs: Array | None, **attributes: Any) -> list[Array]:
        arrays = {str(place): array for place, array in enumerate(inputs) if array is not None}
        reply = ask(Message("call", {"operator": name, "count": len(inputs), "attributes": attributes}, arrays))
        if reply.kind == "raised":
            raise RuntimeFailed(reply.facts["message"])
        return list(reply.arrays.values())

    return call


def answer_call(call: Message, operators: Mapping[str, Callable[..., Any]]) -> Message:
    """In the parent: what the user's function says."""
    facts = call.facts
    inputs = [call.arrays.get(str(place)) for place in range(facts["count"])]
    try:
        result = operators[facts["operator"]](*inputs, **facts["attributes"])
        given = [np.asarray(each) for each in (result if isinstance(result, (tuple, list)) else [result])]
    except Exception as error:
        return Message("raised", {"message": f"operator {facts['operator']} raised {type(error).__name__}: {error}"})
    return Message("returned", {}, {str(place): array for place, array in enumerate(given)})
