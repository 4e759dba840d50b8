"""Edge values of the inputs, so that a branch on values which was baked into the file is noticed.

A draw of random numbers rarely meets a branch such as `if x.sum() == 0`; these do. They may lie outside of what the
model is for, so what the module refuses, or answers without finite numbers, is set aside and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from anyshape.runtime.dtypes import Array
from anyshape.verify.compare import is_float, widen
from anyshape.verify.reference import Answer, CallInputs
from anyshape.verify.tensors import map_tensors

RANDOM = "random"
_HALF_RANGE = 1e5
_FINE = 1e-4
Inputs = TypeVar("Inputs", bound=CallInputs)
Change = Callable[[torch.Tensor], torch.Tensor]


def _floats(change: Change) -> Change:
    # Eight-bit floats have hardly an operator; what they hold comes from a quantizer, not from the user.
    return lambda tensor: change(tensor) if tensor.is_floating_point() and tensor.element_size() > 1 else tensor


def _masks(value: bool) -> Change:
    return lambda tensor: torch.full_like(tensor, value) if is_mask(tensor) else tensor


def _negated(tensor: torch.Tensor) -> torch.Tensor:
    # An infinity of the user's stands for "masked": with the other sign it stands for nothing.
    return torch.where(tensor.isinf(), tensor, -tensor)


def _enlarged(tensor: torch.Tensor) -> torch.Tensor:
    # Not so in half precision: what overflows there says nothing about the file.
    return tensor * 100 if torch.finfo(tensor.dtype).max > _HALF_RANGE else tensor


def _diminished(tensor: torch.Tensor) -> torch.Tensor:
    # Not so in half precision and bfloat16: beside any constant, what is left of them is mostly rounding.
    return tensor / 100 if torch.finfo(tensor.dtype).eps < _FINE else tensor


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1)[:1].expand(tensor.numel()).reshape(tensor.shape).clone() if tensor.numel() else tensor


@dataclass(frozen=True)
class EdgeValues:
    """A named change of the inputs' values. `ties`: it makes values equal, so that choosing among them is arbitrary."""

    name: str
    change: Change
    ties: bool = False


EDGES = (
    EdgeValues("negated", _floats(_negated)),
    EdgeValues("zeros", _floats(torch.zeros_like), ties=True),
    EdgeValues("large", _floats(_enlarged)),
    EdgeValues("small", _floats(_diminished)),
    EdgeValues("repeated", _floats(_repeated), ties=True),
    EdgeValues("all-false", _masks(False), ties=True),
    EdgeValues("all-true", _masks(True)),
)


def is_mask(tensor: torch.Tensor) -> bool:
    """Booleans, and integers of two or more axes that hold nothing but 0 and 1."""
    if tensor.dtype is torch.bool:
        return True
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dim() < 2 or tensor.numel() == 0:
        return False
    return bool(((tensor == 0) | (tensor == 1)).all())


def edge_called(name: str) -> EdgeValues | None:
    """The edge values of that name; None for random ones."""
    return next((edge for edge in EDGES if edge.name == name), None)


def edges_of(inputs: Inputs) -> Iterator[EdgeValues]:
    """The edge values that change something about these inputs."""
    for edge in EDGES:
        changed = False

        def note(tensor: torch.Tensor, change: Change = edge.change) -> torch.Tensor:
            nonlocal changed
            other = change(tensor)
            changed = changed or (other is not tensor and not torch.equal(other, tensor))
            return tensor

        map_tensors(inputs, note)
        if changed:
            yield edge


def with_values(inputs: Inputs, edge: EdgeValues | None) -> Inputs:
    """A copy of the inputs that has these values; random ones stay as they are."""
    return inputs if edge is None else map_tensors(inputs, edge.change)


def is_finite(answer: Answer) -> bool:
    """Whether an answer holds neither NaN nor infinity."""
    return not any(_holds(np.isnan, array) or _holds(np.isinf, array) for array in answer.arrays)


def is_usable(answer: Answer, ordinary: Answer) -> bool:
    """Whether an answer to edge values says something: it must not lose numbers that ordinary values give."""
    return not any(
        _holds(test, one) and not _holds(test, other)
        for test in (np.isnan, np.isinf)
        for one, other in zip(answer.arrays, ordinary.arrays, strict=False)
    )


def _holds(test: Callable[[Array], Array], array: Array) -> bool:
    return is_float(array) and bool(test(widen(array)).any())
