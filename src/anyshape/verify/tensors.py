"""Tensors inside whatever nesting holds them: copied, cast, or read as numpy arrays.

`map_tensors` goes through `copy.deepcopy`, so it reaches into caches, dataclasses and named tuples alike, and no two
results share a container with the original.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_leaves

from anyshape.modules.same_values import bytes_of_contiguous
from anyshape.runtime.child_messages import Array, dtype_called

Value = TypeVar("Value")

_PLAIN = (int, float, bool, str, complex, type(None))
_BITS = {1: torch.uint8, 2: torch.int16}
_WIDE = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}


class _Mapping(TorchFunctionMode):
    """While active, copying a tensor deeply gives what `change` makes of it."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._change = change

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is not torch.Tensor.__deepcopy__:
            return func(*args, **(kwargs or {}))
        tensor, memo = args
        if id(tensor) not in memo:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                memo[id(tensor)] = self._change(tensor.detach().clone())
        return memo[id(tensor)]


def map_tensors(value: Value, change: Callable[[torch.Tensor], torch.Tensor]) -> Value:
    """A deep copy of `value` in which every plain tensor is what `change` makes of its copy."""
    with _Mapping(change):
        return copy.deepcopy(value)


def cloned(value: Value) -> Value:
    """A deep copy that shares no memory with the original; tensors are detached."""
    return map_tensors(value, lambda tensor: tensor)


def _is_readable(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor has its elements and nothing else, and lies here."""
    return tensor.layout is torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized


def fingerprint(value: Any) -> bytes | None:
    """A digest of nested lists, tuples and dicts of plain tensors and numbers, equal for equal ones; None for others."""
    leaves, structure = tree_flatten(value)
    found = hashlib.blake2b(repr(structure).encode())
    for leaf in leaves:
        if type(leaf) in _PLAIN:
            found.update(repr((type(leaf), leaf)).encode())
        elif type(leaf) is torch.Tensor and _is_readable(leaf):
            found.update(repr((leaf.dtype, leaf.shape)).encode())
            dense = leaf.detach().resolve_conj().resolve_neg().contiguous()
            found.update(bytes_of_contiguous(dense).numpy().data)
        else:
            return None
    return found.digest()


def has_nan(value: Any) -> bool:
    """Whether NaN is among the floats of the plain tensors in nested lists, tuples and dicts."""
    return any(isinstance(leaf, torch.Tensor) and _has_nan(leaf) for leaf in tree_leaves(value))


def _has_nan(tensor: torch.Tensor) -> bool:
    has_room = (tensor.is_floating_point() and tensor.element_size() > 1) or tensor.is_complex()
    return has_room and _is_readable(tensor) and bool(tensor.isnan().any())


def as_float64(tensor: torch.Tensor) -> torch.Tensor:
    """Floating-point tensors in double precision, others as they are."""
    if tensor.is_floating_point():
        return tensor.double()
    return tensor.to(_WIDE.get(tensor.dtype, tensor.dtype))


def module_in_float64(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy of a module in double precision. Its parameters are never copied in their own precision."""
    copied: dict[int, Any] = {
        id(parameter): torch.nn.Parameter(parameter.detach().to(torch.float64, copy=True), parameter.requires_grad)
        for parameter in module.parameters()
        if type(parameter) is torch.nn.Parameter and parameter.is_floating_point()
    }
    with _Mapping(as_float64):
        return copy.deepcopy(module, copied).double()


def total_elements(value: Any) -> int:
    """The number of elements of all tensors in `value`."""
    found: list[int] = []

    def count(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor.numel())
        return tensor

    map_tensors(value, count)
    return sum(found)


def to_array(value: Any) -> Array:
    """A tensor or a Python number as an array of its own memory; Python ints are int64, floats float64."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=_dtype_of_number(value))
    tensor = value.detach().to_dense() if value.layout is not torch.strided else value.detach()
    tensor = tensor.dequantize() if tensor.is_quantized else tensor
    tensor = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name.startswith(("bfloat16", "float8")):
        bits = tensor.view(_BITS[tensor.element_size()])
        return np.array(bits.numpy()).view(dtype_called(name))
    return np.array(tensor.numpy())


def _dtype_of_number(value: Any) -> Any:
    if isinstance(value, str):
        return object
    if isinstance(value, bool):
        return np.bool_
    return np.int64 if isinstance(value, int) else np.complex128 if isinstance(value, complex) else np.float64
