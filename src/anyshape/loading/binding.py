"""The arguments of a call, in the user's own structure, as inputs of the file, and arrays from and to torch tensors.

torch is never imported here: a caller with a tensor has imported it already.

Everything is found by its path: `past=((k, v),)` gives `past.0.0` and `past.0.1`. A path, or the name of an input in
the file, can be given as it is, too.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import anyshape.loading.broken_calls as say
from anyshape.findings import ContractBroken
from anyshape.records.contract import Constant, Contract, Opaque, TensorPromise, as_opaque
from anyshape.runtime.child_messages import EXTENDED, Array, dtype_called

_CARRIERS = {1: "uint8", 2: "int16"}
_PLAIN = (bool, int, float, complex, str, bytes)


def is_torch_tensor(value: Any) -> bool:
    """Whether the value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """Whether the value is a tensor of any library, or a number of numpy's."""
    return is_torch_tensor(value) or isinstance(value, (np.ndarray, np.generic)) or hasattr(type(value), "__array__")


def as_array(tensor: TensorPromise, value: Any) -> Array:
    """The value as an array for this input. Raises ContractBroken on what is neither an array nor a fitting number."""
    if is_torch_tensor(value):
        return _from_torch(tensor, value)
    if is_array(value):
        try:
            return np.asarray(value)
        except Exception as error:  # of another library's own code
            kind = f"a {type(value).__name__} that gives no array ({type(error).__name__})"
            raise ContractBroken(say.not_an_array(tensor, kind)) from error
    if isinstance(value, (bool, int, float)) and not tensor.axes:
        return _from_number(tensor, value)
    raise ContractBroken(say.not_an_array(tensor, f"a {type(value).__name__}"))


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


def _without_values(value: Any) -> tuple[str, str] | None:
    """Why a torch tensor is no array, and the call that makes one of it; None for those that are."""
    torch = sys.modules["torch"]
    if value.is_nested:
        return "a nested tensor", "torch.nested.to_padded_tensor(x, 0.0), or one call for each of its parts."
    if value.is_meta:
        return "a tensor on the meta device, which has no values", "give a tensor with values: torch.zeros(x.shape)."
    if value.is_quantized:
        return "a quantized tensor", "x.dequantize()"
    if value.layout is not torch.strided:
        return f"a tensor of the layout {value.layout}", "x.to_dense()"
    return None


def _from_torch(tensor: TensorPromise, value: Any) -> Array:
    unusable = _without_values(value)
    if unusable is not None:
        raise ContractBroken(say.not_an_array(tensor, *unusable))
    try:
        return _array_of(value)
    except (RuntimeError, TypeError) as error:  # a subclass without memory of its own, such as a fake tensor
        raise ContractBroken(say.not_an_array(tensor, f"a {type(value).__name__} without values")) from error


def _array_of(value: Any) -> Array:
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if name not in EXTENDED:
        array: Array = plain.numpy()
        return array
    torch = sys.modules["torch"]
    carrier: Array = plain.view(getattr(torch, _CARRIERS[plain.element_size()])).numpy()
    return carrier.view(dtype_called(name))


def as_pairs(array: Array) -> Array:
    """Complex numbers as pairs, on a last axis of 2: runtimes have none. Other arrays as they are."""
    return np.stack([array.real, array.imag], axis=-1) if np.iscomplexobj(array) else array


def to_torch(array: Array, device: Any) -> Any:
    """The array as a torch tensor on the device."""
    torch = sys.modules["torch"]
    writable = array if array.flags.writeable else array.copy()
    name = array.dtype.name
    if name not in EXTENDED:
        return torch.from_numpy(writable).to(device)
    carried = torch.from_numpy(writable.view(_CARRIERS[array.dtype.itemsize]))
    return carried.view(getattr(torch, name)).to(device)


@dataclasses.dataclass(frozen=True)
class Bound:
    """Arrays by the names of inputs; `torch_inputs` were torch tensors, and `device` is where the first of them lay."""

    feeds: Mapping[str, Array]
    torch_inputs: frozenset[str]
    device: Any = None


class Binder:
    """Knows the paths and names of one contract."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._inputs: dict[str, TensorPromise] = {tensor.name: tensor for tensor in contract.inputs}
        self._inputs.update({tensor.path: tensor for tensor in contract.inputs})
        self._constants: dict[str, Constant] = {constant.path: constant for constant in contract.constants}
        self._paths = tuple(dict.fromkeys((*self._inputs, *self._constants)))
        self._known = {prefix for path in self._paths for prefix in _prefixes(path)}
        self._parameters = contract.parameters or tuple(dict.fromkeys(_head(tensor.path) for tensor in contract.inputs))

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """The arrays of the call. Raises ContractBroken on what has no place in the file, and on other constants."""
        feeds: dict[str, Array] = {}
        tensors: dict[str, Any] = {}
        for tensor, value in self._leaves(args, kwargs):
            if tensor.name in feeds:
                raise ContractBroken(say.given_twice(tensor.name))
            feeds[tensor.name] = as_array(tensor, value)
            if is_torch_tensor(value):
                tensors[tensor.name] = value
        device = next(iter(tensors.values())).device if tensors else None
        return Bound(feeds, frozenset(tensors), device)

    def _leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[TensorPromise, Any]]:
        if len(args) > len(self._parameters):
            raise ContractBroken(say.too_many_arguments(len(args), self._parameters))
        by_place = dict(zip(self._parameters, args, strict=False))
        for name, value in by_place.items():
            if name in kwargs:
                raise ContractBroken(say.given_twice(name))
            yield from self._walk(value, name)
        for name, value in kwargs.items():
            yield from self._walk(value, self._root(name))

    def _root(self, name: str) -> str:
        """The path of a keyword; one that went into `**extra` is `extra.name`."""
        if name in self._known:
            return name
        inside = {_head(path) for path in self._paths if path.split(".")[1:2] == [name]}
        return f"{inside.pop()}.{name}" if len(inside) == 1 else name

    def _walk(self, value: Any, path: str) -> Iterator[tuple[TensorPromise, Any]]:
        if path in self._inputs:
            if value is None:
                return  # the same as not given: what is missing is said once, for all inputs
            yield self._inputs[path], value
        elif path in self._constants:
            self._check_constant(self._constants[path], value)
        elif path not in self._known and not (value is None and _head(path) in self._known):
            raise ContractBroken(say.unknown_input(path, self._contract.inputs))
        elif isinstance(value, _PLAIN) or is_array(value):
            inside = [known for known in self._paths if known.startswith(f"{path}.")]
            raise ContractBroken(say.not_a_container(path, type(value).__name__, inside))
        else:
            for name, child in _children(value):
                yield from self._walk(child, f"{path}.{name}")

    def _check_constant(self, constant: Constant, value: Any) -> None:
        if _is_same(constant.value, value):
            return
        actual = f"a {type(value).__name__}" if is_array(value) else repr(value)
        raise ContractBroken(say.constant_differs(constant.path, _spoken(constant.value), actual))


def _prefixes(path: str) -> Iterator[str]:
    """The path itself, and every path that leads to it."""
    parts = path.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _head(path: str) -> str:
    return path.partition(".")[0]


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container by the names that paths have for them."""
    if isinstance(value, Mapping):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, (tuple, list)):
        names = getattr(type(value), "_fields", None) or map(str, range(len(value)))
        yield from zip(names, value, strict=True)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    elif value is not None:
        # A cache, or a class that is registered with torch: whoever has one has imported torch.
        from anyshape.inputs.tree import flatten

        yield from flatten(value)[0]


def _is_same(expected: Any, actual: Any) -> bool:
    if is_array(actual):
        return False
    if isinstance(expected, Opaque):
        return as_opaque(actual) == expected
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, float) and isinstance(actual, float) and expected != expected:
        return actual != actual  # NaN
    are_numbers = isinstance(expected, (int, float)) and isinstance(actual, (int, float))  # 2 and 2.0 mean the same
    return (are_numbers or type(expected) is type(actual)) and bool(expected == actual)


def _spoken(value: Any) -> str:
    return str(value) if isinstance(value, Opaque) else repr(value)
