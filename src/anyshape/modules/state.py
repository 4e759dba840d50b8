"""A module's state as it was: taken once, put back as often as needed.

State is what forward can change: attributes of every submodule (buffers, caches kept in lists and dicts, counters),
training flags, gradients, and torch's random numbers. Parameters are compared by version, not copied: a module of many
gigabytes must not be held twice.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

_CONTAINERS = (list, dict, set)


@dataclass(frozen=True)
class _Attributes:
    """One submodule's `__dict__`, its containers one level down, and copies of the tensors that it holds."""

    module: torch.nn.Module
    values: dict[str, Any]
    containers: dict[str, Any]


class _KeptTensor:
    """A tensor with a copy of its values, written back only when torch's version counter says that it changed."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._values = tensor.detach().clone()
        self._version = tensor._version

    def restore(self) -> None:
        if self._tensor._version != self._version:
            self._tensor.copy_(self._values)
            self._version = self._tensor._version


class State:
    """A snapshot of a module. `restore` puts everything back, and may be called many times."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._attributes = [_take(part) for part in module.modules()]
        tensors = {id(tensor): tensor for part in self._attributes for tensor in _plain_tensors(part)}
        self._tensors = [_KeptTensor(tensor) for tensor in tensors.values()]
        self._parameters = [(parameter, parameter._version, parameter.grad) for parameter in module.parameters()]
        self._random = torch.random.get_rng_state()

    def restore(self) -> None:
        """Put back attributes, tensors' values, training flags, gradients and random numbers."""
        for part in self._attributes:
            attributes = vars(part.module)
            for name in attributes.keys() - part.values.keys():
                del attributes[name]
            attributes.update(part.values)
            for name, container in part.containers.items():
                _refill(part.values[name], container)
        with torch.no_grad():
            for kept_tensor in self._tensors:
                kept_tensor.restore()
        for parameter, _, gradient in self._parameters:
            parameter.grad = gradient
        torch.random.set_rng_state(self._random)

    @property
    def has_changed_parameters(self) -> bool:
        """Whether forward wrote into a parameter: such a module has no single answer."""
        return any(parameter._version != version for parameter, version, _ in self._parameters)


@contextmanager
def kept(module: torch.nn.Module) -> Iterator[None]:
    """Within this the module is in eval mode and may change; afterwards it is as before, also after an error."""
    state = State(module)
    module.eval()
    try:
        yield
    finally:
        state.restore()


def _take(module: torch.nn.Module) -> _Attributes:
    values = dict(vars(module))
    containers = {name: copy.copy(value) for name, value in values.items() if isinstance(value, _CONTAINERS)}
    return _Attributes(module, values, containers)


def _refill(container: Any, content: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(content)
    else:
        container.update(content)


def _plain_tensors(part: _Attributes) -> Iterator[torch.Tensor]:
    """Buffers and tensors kept as attributes or in containers, without the parameters."""
    for value in part.values.values():
        yield from _tensors_in(value)
    for content in part.containers.values():
        yield from _tensors_in(content)


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else (value,)
    for item in items:
        if isinstance(item, torch.Tensor) and not isinstance(item, torch.nn.Parameter):
            yield item
