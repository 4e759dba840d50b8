"""Results and errors as bytes; tensors that the caller has as well travel by their place in the caller's memory.

A fork has the caller's tensors at the same addresses. A tensor whose memory nobody has written since the fork is therefore
sent as the number of the caller's tensor, so that weights are in memory once, and no 2 GB go through a pipe. Other large
arrays, such as weights that an export has transposed, are written once, to memory that both processes have.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Iterable
from types import MethodType
from typing import TYPE_CHECKING, Any

from anyshape.processes.guarded import guarded_copy

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch

_IN_MEMORY = "anyshape:memory"
_STATE = {"guards": False}
_SMALL = 1024  # bytes of a tensor that may as well travel inside the graph
_LARGE = 1 << 16  # bytes of an array that is not copied into the message


class SharedMemory:
    """Memory that is made before a fork, for large arrays of the forked process: its caller has them without another copy."""

    def __init__(self) -> None:
        on_linux = hasattr(os, "memfd_create")
        self._file = (
            os.fdopen(os.memfd_create("anyshape"), "r+b", buffering=0)
            if on_linux
            else tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this object lives
        )

    def __del__(self) -> None:
        self._file.close()  # what was read from it stays

    def write(self, arrays: Iterable[memoryview]) -> list[tuple[int, int]]:
        """Append the arrays. Returns where each begins and ends."""
        places = []
        for array in arrays:
            start = -(-self._file.seek(0, os.SEEK_END) // mmap.PAGESIZE) * mmap.PAGESIZE
            self._file.seek(start)
            written = 0
            while written < array.nbytes:  # the system may write a part
                written += self._file.write(array[written:]) or 0
            places.append((start, start + array.nbytes))
        return places

    def read(self, places: list[tuple[int, int]]) -> list[memoryview]:
        """The arrays at these places. They may be written to, and stay when this object is gone."""
        if not places:
            return []
        memory = memoryview(mmap.mmap(self._file.fileno(), max(end for _, end in places), access=mmap.ACCESS_COPY))
        return [memory[start:end] for start, end in places]


class SharedTensors:
    """The tensors that a forked process has from its caller, by their place in memory; and memory for what it sends back."""

    def __init__(self, tensors: Iterable[torch.Tensor], memory: SharedMemory | None = None) -> None:
        self.memory = memory
        self._tensors: list[torch.Tensor] = []
        self._numbers: dict[Any, int] = {}
        self._versions: list[int] = []
        for tensor in tensors:
            place = _place(tensor)
            if place is not None and place not in self._numbers:
                self._numbers[place] = len(self._tensors)
                self._tensors.append(tensor.detach())
                self._versions.append(tensor._version)

    def number_of(self, tensor: torch.Tensor) -> int | None:
        """The number of the tensor with this memory, None where the caller has none, or another value in it."""
        number = self._numbers.get(_place(tensor))
        if number is None or self._tensors[number]._version != self._versions[number]:
            return None
        return number

    def get(self, number: int) -> torch.Tensor:
        """The caller's tensor of this number."""
        return self._tensors[number]


def tensors_of(values: Iterable[Any]) -> list[torch.Tensor]:
    """The parameters and buffers of the modules among these values."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    modules = [value.__self__ if isinstance(value, MethodType) else value for value in values]
    return [
        tensor
        for module in modules
        if isinstance(module, torch.nn.Module)
        for tensor in (*module.parameters(), *module.buffers())
        if type(tensor) in (torch.Tensor, torch.nn.Parameter)
    ]


def _place(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    try:
        return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    except RuntimeError:  # sparse, quantized in another way, or without storage
        return None


def pack(value: Any, shared: SharedTensors) -> bytes:
    """The value as bytes. Raises what pickle raises for a value that cannot be sent."""
    stream, arrays = io.BytesIO(), list[pickle.PickleBuffer]()
    _Packer(stream, shared, arrays).dump(value)
    places = shared.memory.write(array.raw() for array in arrays) if shared.memory is not None else []
    return pickle.dumps((stream.getvalue(), places))


def unpack(content: bytes, shared: SharedTensors) -> Any:
    """The value that `pack` made bytes of."""
    message, places = pickle.loads(content)
    arrays = shared.memory.read(places) if shared.memory is not None else []
    return _Unpacker(io.BytesIO(message), shared, arrays).load()


def pack_parts(value: Any) -> tuple[bytes, list[memoryview]]:
    """The value as bytes, and the memory of its arrays and tensors, which need not be copied to be sent."""
    stream = io.BytesIO()
    arrays: list[pickle.PickleBuffer] = []
    _PartsPacker(stream, protocol=5, buffer_callback=arrays.append).dump(value)
    return stream.getvalue(), [array.raw() for array in arrays]


class _PartsPacker(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(value) is not torch.Tensor or not _is_dense(value):
            return NotImplemented
        memory = value.detach().reshape(-1).view(torch.uint8).numpy()
        return _read_tensor, (memory, value.dtype, tuple(value.shape), value.requires_grad)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the values lie one after the other in memory that belongs to this tensor alone."""
    import torch

    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or not tensor.is_leaf:
        return False
    if tensor.is_conj() or tensor.is_neg() or not tensor.is_contiguous() or tensor.numel() == 0:
        return False
    return tensor.untyped_storage().nbytes() == tensor.nbytes


def _read_tensor(memory: Any, dtype: Any, shape: tuple[int, ...], requires_grad: bool) -> torch.Tensor:
    import torch

    values = guarded_copy(memory) if _STATE["guards"] else torch.from_numpy(memory)
    return values.view(dtype).reshape(shape).requires_grad_(requires_grad)


def guard_tensors() -> None:
    """Let the tensors that this process receives end at a page which nobody may touch."""
    _STATE["guards"] = True


class _Packer(_PartsPacker):
    def __init__(self, stream: io.BytesIO, shared: SharedTensors, arrays: list[pickle.PickleBuffer]) -> None:
        def keep(array: pickle.PickleBuffer) -> bool:
            """Whether the array goes into the message."""
            is_large = shared.memory is not None and array.raw().nbytes >= _LARGE
            if is_large:
                arrays.append(array)
            return not is_large

        super().__init__(stream, protocol=5, buffer_callback=keep)
        self._shared = shared

    def persistent_id(self, value: Any) -> int | None:
        torch = sys.modules.get("torch")
        if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
            return None
        return self._shared.number_of(value)

    def reducer_override(self, value: Any) -> Any:
        ir = sys.modules.get("onnx_ir")
        if ir is not None and isinstance(value, ir.Model):
            return _read_model, _written_model(value)
        if type(value) is type(sys):  # a module of Python
            return __import__("importlib").import_module, (value.__name__,)
        if isinstance(value, type({}.keys())):
            return list, (list(value),)
        return super().reducer_override(value)


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, shared: SharedTensors, arrays: list[memoryview]) -> None:
        super().__init__(stream, buffers=arrays)
        self._shared = shared

    def persistent_load(self, number: Any) -> torch.Tensor:
        return self._shared.get(number)


def _written_model(model: ir.Model) -> tuple[bytes, list[Any]]:
    """The graph as protobuf, in which larger tensors have a number in place of their values; and these tensors."""
    import onnx_ir as ir

    kept: list[tuple[ir.Value, ir.TensorProtocol]] = []
    tensors: list[Any] = []
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is None or tensor.nbytes < _SMALL or tensor.dtype == ir.DataType.STRING:
                continue
            kept.append((value, tensor))
            value.const_value = ir.ExternalTensor(
                _IN_MEMORY,
                len(tensors),
                tensor.nbytes,
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=value.name or "",
                doc_string=tensor.doc_string,
                metadata_props=dict(tensor.metadata_props),
            )
            tensors.append(_sendable(tensor))
    try:
        return ir.to_proto(model).SerializeToString(), tensors
    finally:
        for value, tensor in kept:
            value.const_value = tensor


def _sendable(tensor: ir.TensorProtocol) -> tuple[str, Any]:
    """A tensor of torch as itself, any other as an array."""
    import torch

    raw = getattr(tensor, "raw", None)
    if isinstance(raw, torch.Tensor) and type(raw) in (torch.Tensor, torch.nn.Parameter):
        return "torch", raw.detach()
    return "array", tensor.numpy()


def _read_model(content: bytes, tensors: list[Any]) -> ir.Model:
    import onnx
    import onnx_ir as ir
    from onnx_ir.tensor_adapters import TorchTensor

    model = ir.from_proto(onnx.ModelProto.FromString(content))
    for graph in model.graphs():
        for value in graph.initializers.values():
            held = value.const_value
            if not isinstance(held, ir.ExternalTensor) or held.location != _IN_MEMORY:
                continue
            kind, raw = tensors[held.offset or 0]
            made: Any
            if kind == "torch":
                made = TorchTensor(raw, name=held.name, doc_string=held.doc_string)
            else:
                shape = ir.Shape(held.shape.numpy())
                made = ir.Tensor(raw, held.dtype, shape=shape, name=held.name, doc_string=held.doc_string)
            made.metadata_props.update(held.metadata_props)
            value.const_value = made
    return model


class RemoteError(Exception):
    """The traceback of an error in the process of the export, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def pack_error(error: BaseException, shared: SharedTensors) -> bytes:
    """An error with its causes; one that cannot be sent becomes a RuntimeError of the same words."""
    chain: list[BaseException] = []
    links: list[bool] = []
    each: BaseException | None = error
    while each is not None and each not in chain:
        chain.append(each)
        links.append(each.__cause__ is not None)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    parts = [_packed_part(part, shared) for part in chain]
    words = "".join(traceback.format_exception(error))
    return pack((parts, links, words), shared)


def _packed_part(error: BaseException, shared: SharedTensors) -> tuple[bytes, str]:
    """The error, or nothing where it cannot be made again from what is sent; and its class and words."""
    try:
        words = f"{type(error).__name__}: {error}"
    except Exception:
        words = type(error).__name__
    try:
        content = pack((error, error.__dict__), shared)
        unpack(content, shared)  # an error whose class takes other arguments cannot be made again
    except Exception:
        content = b""
    return content, words


def _read_part(content: bytes, words: str, shared: SharedTensors) -> BaseException:
    try:
        error, facts = unpack(content, shared)
    except Exception:  # such as a class of a file that only the other process has imported
        return RuntimeError(words)
    error.__dict__.update(facts)
    assert isinstance(error, BaseException)
    return error


def unpack_error(content: bytes, shared: SharedTensors) -> BaseException:
    """The error that `pack_error` made bytes of, with its causes."""
    parts, links, words = unpack(content, shared)
    errors = [_read_part(part, text, shared) for part, text in parts]
    for error, cause, is_cause in zip(errors, errors[1:], links, strict=False):
        if is_cause:
            error.__cause__ = cause
        else:
            error.__context__ = cause
    if len(errors) == 1:
        errors[0].__cause__ = None
    errors[0].__dict__.setdefault("remote_traceback", words)
    return errors[0]
