"""Arrays of a call and of its answer, from and to torch tensors.

torch is never imported here: whoever has a tensor has imported it already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from anyshape.contract import call_messages as say
from anyshape.findings import ContractBroken
from anyshape.records.contract import TensorPromise
from anyshape.runtime.dtypes import EXTENDED, Array, dtype_called

_CARRIERS = {1: "uint8", 2: "int16"}


def is_torch_tensor(value: Any) -> bool:
    """Whether the value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """Whether the value is a tensor of any library, or a number of numpy's."""
    return is_torch_tensor(value) or isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")


def as_array(tensor: TensorPromise, value: Any) -> Array:
    """The value as an array for this input. Raises ContractBroken on what is neither an array nor a fitting number."""
    if is_torch_tensor(value):
        return _from_torch(value)
    if is_array(value):
        return np.asarray(value)
    if isinstance(value, (bool, int, float)) and not tensor.axes:
        return _from_number(tensor, value)
    raise ContractBroken(say.not_an_array(tensor, type(value).__name__))


def _from_number(tensor: TensorPromise, value: bool | int | float) -> Array:
    """A Python number as a 0-d array, where nothing of it is lost."""
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
    fitting = {"bool": ("bool",), "int": ("int", "uint", "float", "bfloat"), "float": ("float", "bfloat")}[kind]
    if tensor.dtype.startswith(fitting):
        try:
            return np.asarray(value, dtype=dtype_called(tensor.dtype))
        except OverflowError:
            kind = f"the int {value}"
    raise ContractBroken(say.wrong_dtype(tensor, kind, is_torch=False))


def _from_torch(value: Any) -> Array:
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if name not in EXTENDED:
        array: Array = plain.numpy()
        return array
    torch = sys.modules["torch"]
    carrier: Array = plain.view(getattr(torch, _CARRIERS[plain.element_size()])).numpy()
    return carrier.view(dtype_called(name))


def to_torch(array: Array, device: Any) -> Any:
    """The array as a torch tensor on the device."""
    torch = sys.modules["torch"]
    writable = array if array.flags.writeable else array.copy()
    name = array.dtype.name
    if name not in EXTENDED:
        return torch.from_numpy(writable).to(device)
    carried = torch.from_numpy(writable.view(_CARRIERS[array.dtype.itemsize]))
    return carried.view(getattr(torch, name)).to(device)
