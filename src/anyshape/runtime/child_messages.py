"""Messages between us and the child process: arrays of every element type, and what can go wrong when it runs an ONNX
file.

8 bytes, little endian: length of the header (JSON) | header | array bytes, one after the other
    child: call mylib::Scale with these arrays  ->  here: the user's function  ->  child: returned, or raised

Arrays are written from, and read into, their own memory: a large one is never held twice on one side. Errors are plain
exceptions, not findings: only a stage has the sizes at which they happened and what that means.

`ml_dtypes` is imported only when such a type is met, so that ordinary models do not pay for it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO

import numpy as np

from anyshape.findings.finding import text_of_error

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 24
# TensorProto.DataType, by the name that both `ml_dtypes` and onnxruntime (without its underscores) use.
EXTENDED = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20}
_ORT_NAMES = {
    "float": "float32",
    "double": "float64",
    "string": "object",
    **{name.replace("_", ""): name for name in EXTENDED},
}


class RunError(Exception):
    """Base of all three: an ONNX file did not give its outputs."""


class RuntimeRejected(RunError):
    """The runtime cannot load the model. `unsupported`: the file is well formed, but a kernel is missing."""

    def __init__(self, message: str, unsupported: bool = False) -> None:
        super().__init__(message, unsupported)
        self.message = message
        self.unsupported = unsupported

    def __str__(self) -> str:
        return self.message


class RuntimeFailed(RunError):
    """The model was loaded, but a run of it raised. `memory`: because it could not allocate."""

    def __init__(self, message: str, memory: bool = False) -> None:
        super().__init__(message, memory)
        self.message = message
        self.memory = memory

    def __str__(self) -> str:
        return self.message


class Death(Enum):
    """How a child process came to its end."""

    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


class ChildDied(RunError):
    """The child process is gone: `how` reads `crashed with signal 11 (SIGSEGV)`; `detail` is what it last wrote."""

    def __init__(self, how: str, death: Death, detail: str = "") -> None:
        super().__init__(how, death, detail)
        self.how = how
        self.death = death
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.how}: {self.detail}" if self.detail else self.how


@dataclass(frozen=True)
class Message:
    """One request or reply: what it is, the plain facts that go with it, and arrays by name."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)


def write_message(stream: BinaryIO, message: Message) -> None:
    """Write and flush; OSError when the reader is gone."""
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
    """In the child: the function that calls the parent."""

    def call(*inputs: Array | None, **attributes: Any) -> list[Array]:
        arrays = {str(place): array for place, array in enumerate(inputs) if array is not None}
        reply = ask(Message("call", {"operator": name, "count": len(inputs), "attributes": attributes}, arrays))
        if reply.kind == "raised":
            raise RuntimeFailed(reply.facts["message"])
        return list(reply.arrays.values())

    return call


def reply_to_call(call: Message, operators: Mapping[str, Callable[..., Any]]) -> Message:
    """In the parent: the result of the user's function."""
    facts = call.facts
    inputs = [call.arrays.get(str(place)) for place in range(facts["count"])]
    try:
        result = operators[facts["operator"]](*inputs, **facts["attributes"])
        given = [np.asarray(each) for each in (result if isinstance(result, (tuple, list)) else [result])]
    except Exception as error:
        said = f"operator {facts['operator']} raised {type(error).__name__}: {text_of_error(error)}"
        return Message("raised", {"message": said})
    return Message("returned", {}, {str(place): array for place, array in enumerate(given)})


Array = np.ndarray[Any, np.dtype[Any]]


def dtype_called(name: str) -> np.dtype[Any]:
    """The dtype of that name (`float32`, `bfloat16`, `object` for strings); the inverse of `dtype.name`."""
    if name in EXTENDED:
        import ml_dtypes

        name = getattr(ml_dtypes, name)
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype


def dtype_of_ort_type(ort_type: str) -> str | None:
    """`tensor(float)` -> `float32`; None for what is not a tensor (sequences, maps, optionals)."""
    if not (ort_type.startswith("tensor(") and ort_type.endswith(")")):
        return None
    element = ort_type[len("tensor(") : -1]
    return _ORT_NAMES.get(element, element)


def raw(array: Array) -> Array:
    """The array's bytes, flat and contiguous, without a copy where it is contiguous already."""
    return np.asarray(array, order="C").reshape(-1).view(np.uint8)


def from_raw(data: bytes | bytearray | memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The inverse of `raw`; shares memory with `data`."""
    return np.frombuffer(data, dtype=np.uint8).view(dtype).reshape(shape)
