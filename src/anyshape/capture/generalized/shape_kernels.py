"""Operators on fake tensors by torch's own kernels for shapes, without the way through FakeTensorMode.

FakeTensorMode takes an operator apart in Python, and looks into a cache, makes an entry and checks devices for each part. For
operators of torch that write nothing, whose tensors are all on one device, the kernel of the meta device gives the same
shapes in a tenth of the time. Everything else goes the usual way, also where such a kernel raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import in_kernel_invocation_manager
from torch.nn import Parameter

_PLAIN = (torch.Tensor, Parameter)


class ShapeKernels:
    """Runs operators on the fake tensors of one mode."""

    def __init__(self, fake: FakeTensorMode) -> None:
        self._fake = fake
        self._fakes: dict[int, tuple[torch.Tensor, FakeTensor]] = {}
        self._usual: set[Any] = set()  # operators that have no kernel for shapes

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of the operator on fake tensors, by the kernel of the meta device where that can run."""
        device = self._common_device(func, args, kwargs)
        if device is not None:
            try:
                return self._run(func, args, kwargs, device)
            except Exception:  # the usual way says what is wrong, or has a kernel
                self._usual.add(func)
        return func(*args, **kwargs)

    def _common_device(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.device | None:
        """The device of all tensors; None where the operator goes the usual way."""
        if func.namespace != "aten" or func._schema.is_mutable or func in self._usual:
            return None
        found = None
        for value in _values((*args, *kwargs.values())):
            if isinstance(value, torch.device):
                return None
            if not isinstance(value, torch.Tensor):
                continue
            is_plain = value.constant is None if isinstance(value, FakeTensor) else type(value) in _PLAIN
            if not is_plain or value.layout is not torch.strided or found not in (None, value.device):
                return None
            found = value.device
        return found

    def _run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], device: torch.device) -> Any:
        given = [self._faked(value) for value in args]
        named = {name: self._faked(value) for name, value in kwargs.items()}
        with in_kernel_invocation_manager(self._fake), torch._C._DisablePythonDispatcher():
            result = func(*given, **named)
        return self._wrapped(result, device)

    def _faked(self, value: Any) -> Any:
        if isinstance(value, FakeTensor):
            return value
        if isinstance(value, torch.Tensor):
            if id(value) not in self._fakes:
                self._fakes[id(value)] = value, self._fake.from_tensor(value)
            return self._fakes[id(value)][1]
        return [self._faked(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _wrapped(self, result: Any, device: torch.device) -> Any:
        if isinstance(result, FakeTensor) or not isinstance(result, (torch.Tensor, list, tuple)):
            return result
        if isinstance(result, torch.Tensor):
            return self._fake.fake_tensor_converter.from_meta_and_device(self._fake, result, device)
        return type(result)(self._wrapped(item, device) for item in result)


def _values(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _values(value)
        else:
            yield value
